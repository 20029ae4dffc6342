// The form that predicts one row, with a field for each feature.

import { call, modelPath } from "./api.js";
import { bar, byId, element, headRow, number, row } from "./dom.js";
import { percent, shown } from "./numbers.js";

// A row with more features is entered as JSON.
const MOST_FIELDS = 64;
const MOST_REASONS = 6;
const EXAMPLES = '{"warmth": 20, "room": "hall"} or [20, 41]';

export class PredictForm {
  /** @param {(error: unknown) => void} fail */
  constructor(fail) {
    this.fail = fail;
    this.name = "";
    /** @type {any} */
    this.state = undefined;
    this.fields = byId("predict-fields", HTMLElement);
    this.output = byId("prediction", HTMLOutputElement);
    this.why = byId("why", HTMLInputElement);
    /** The description of the fields; when it changes, they are created again. */
    this.description = "";
    /** @type {string[] | undefined} */
    this.names = undefined;
    byId("predict-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#predict();
    });
    byId("fill", HTMLButtonElement).addEventListener("click", () => this.#fill());
  }

  /** @param {string} name */
  reset(name) {
    this.name = name;
    this.description = "";
    this.state = undefined;
    this.fields.replaceChildren();
    this.output.replaceChildren();
  }

  /** @param {any} state */
  show(state) {
    this.state = state;
    // Rows whose names keep changing must not change the form while it is being filled in.
    if (state.rows === "named" && this.description) return;
    const description = JSON.stringify(namesOf(state)) ?? "row";
    if (description === this.description) return;
    this.description = description;
    this.names = namesOf(state);
    this.#makeFields(this.names);
    this.#fill();
  }

  /**
   * Create the fields of a row.
   * @param {string[] | undefined} names
   */
  #makeFields(names) {
    if (names === undefined) {
      const shown = { rows: "3", name: "row", "aria-label": "Row as JSON", placeholder: EXAMPLES };
      const text = element("textarea", shown);
      this.fields.replaceChildren(text);
    } else {
      const made = names.map((name, i) =>
        element("label", {}, name, element("input", { name: String(i), autocomplete: "off" })),
      );
      this.fields.replaceChildren(...made);
    }
  }

  #fill() {
    const row = this.state?.last_row;
    if (!row) return;
    if (this.state.rows === "named") {
      this.names = namesOf(this.state);
      this.#makeFields(this.names);
    }
    /** @type {string[]} */
    const names = this.names ?? [];
    this.fields.querySelectorAll("input").forEach((input, i) => {
      const value = Array.isArray(row) ? row[i] : row[names[i]];
      input.value = value === null || value === undefined ? "" : String(value);
    });
    const text = this.fields.querySelector("textarea");
    if (text) text.value = JSON.stringify(row);
  }

  async #predict() {
    try {
      const probability = this.state.serve === "adaptive" ? { probability: true } : {};
      const explain = this.why.checked ? { explain: MOST_REASONS } : {};
      const body = JSON.stringify({ x: [this.#row()], ...probability, ...explain });
      const answer = await call("POST", modelPath(this.name, "/predict"), { body });
      this.output.replaceChildren(...partsOf(answer));
    } catch (error) {
      this.output.replaceChildren();
      this.fail(error);
    }
  }

  #row() {
    const text = this.fields.querySelector("textarea");
    if (text) return parsed(text.value);
    const values = [...this.fields.querySelectorAll("input")].map((input) => valueOf(input.value));
    if (this.state.rows === "arrays") return values;
    /** @type {string[]} */
    const names = this.names ?? [];
    const given = names.map((name, i) => [name, values[i]]).filter(([, value]) => value !== null);
    return Object.fromEntries(given);
  }
}

/**
 * Return the row that a text describes.
 * @param {string} text
 */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`The row is not JSON. Write it like ${EXAMPLES}.`);
  }
}

/**
 * Return the names of the fields; undefined if a row has too many, or none are known.
 * @param {any} state
 * @returns {string[] | undefined}
 */
function namesOf(state) {
  /** @type {string[] | undefined} */
  let names;
  if (state.columns) names = state.columns.map((/** @type {any} */ column) => column.name);
  else if (state.rows === "arrays") {
    names = Array.from({ length: state.features }, (_, i) => `Feature ${i + 1}`);
  } else if (state.last_row && !Array.isArray(state.last_row)) names = Object.keys(state.last_row);
  return names && names.length <= MOST_FIELDS ? names : undefined;
}

/**
 * Return the value of a field's text: a number, a boolean, a string, or null.
 * @param {string} text
 */
function valueOf(text) {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  return Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed;
}

/** @param {any} answer */
function partsOf(answer) {
  const [prediction] = answer.prediction;
  const text = typeof prediction === "number" ? shown(prediction) : String(prediction);
  /** @type {Node[]} */
  const parts = [element("strong", {}, text)];
  if (answer.standard_deviation) {
    parts.push(document.createTextNode(` ± ${shown(answer.standard_deviation[0])}`));
  }
  const shares = answer.probability?.[0] ?? [];
  const sorted = shares
    .map((/** @type {number} */ share, /** @type {number} */ i) => [answer.classes[i], share])
    .sort((/** @type {any} */ a, /** @type {any} */ b) => b[1] - a[1]);
  for (const [label, share] of sorted.slice(0, 5)) {
    parts.push(element("div", {}, bar(share, `${label} ${percent(share)}`)));
  }
  const reasons = answer.explanation?.[0];
  if (reasons) parts.push(...why(reasons));
  return parts;
}

/**
 * Show how the log-odds of the prediction, or the predicted number, change with each feature.
 * @param {any} reasons
 */
function why(reasons) {
  const against = reasons.against === undefined ? "" : `, not ${reasons.against}`;
  const title = reasons.for === undefined ? "What moves the prediction" : `Why ${reasons.for}${against}`;
  const rows = reasons.gradient.map((/** @type {any} */ one) => {
    const name = one.category === undefined ? one.feature : `${one.feature} is ${one.category}`;
    return row(String(name), number(signed(one.gradient)), number(signed(one.gradient * (one.deviation ?? 1))));
  });
  const effect = reasons.for === undefined ? "the prediction" : "the log-odds";
  return [
    element("h4", {}, title),
    element("p", { class: "small" }, `How ${effect} changes with a feature: per unit, and per standard deviation.`),
    element(
      "table",
      {},
      element("thead", {}, headRow(["Feature", "Per unit", "Per deviation"])),
      element("tbody", {}, ...rows),
    ),
  ];
}

/** @param {number} value */
function signed(value) {
  return value > 0 ? `+${shown(value)}` : shown(value);
}
