// The first screen of a model in words: what it predicts, how good it is, and what to look at.

import { Problem, call, modelPath } from "./api.js";
import { byId, element, fill, headRow, number, row } from "./dom.js";
import { percent, shown } from "./numbers.js";

const LABELS_NAMED = 8;
const REASONS = 5;
const REASONS_PAUSE_MS = 10_000;

export class Summary {
  constructor() {
    this.name = "";
    this.reasonsAt = 0;
    this.sequence = -1;
    this.words = byId("summary-words", HTMLElement);
    this.look = byId("summary-look", HTMLElement);
    this.reasons = byId("summary-reasons", HTMLElement);
  }

  /** @param {string} name */
  reset(name) {
    [this.name, this.reasonsAt, this.sequence] = [name, 0, -1];
    for (const place of [this.words, this.look, this.reasons]) place.replaceChildren();
    byId("confusion", HTMLElement).hidden = byId("columns", HTMLElement).hidden = true;
  }

  /**
   * Show a state.
   * @param {any} state
   */
  show(state) {
    fill(this.words, sentencesOf(state).map((text) => element("p", {}, text)));
    fill(this.look, remarksOf(state).map((text) => element("li", {}, text)));
    showConfusion(state.heads[state.serve]?.scores?.recent);
    showColumns(state.columns);
    void this.#explain(state);
  }

  /**
   * Name the columns that move the prediction of the last row most. Models may be unable to say.
   * @param {any} state
   */
  async #explain(state) {
    const due = Date.now() - this.reasonsAt > REASONS_PAUSE_MS && state.sequence !== this.sequence;
    // Sparse rows have no columns, and a model that has predicted nothing yet may refuse to.
    const able = state.rows !== "named" && state.heads[state.serve]?.prequential?.samples;
    if (!due || !able || !state.last_row) return;
    [this.reasonsAt, this.sequence] = [Date.now(), state.sequence];
    const name = this.name;
    try {
      const body = JSON.stringify({ x: [state.last_row], explain: REASONS });
      const answer = await call("POST", modelPath(name, "/predict"), { body });
      if (name === this.name) this.reasons.textContent = reasonsText(answer.explanation[0]);
    } catch (error) {
      if (!(error instanceof Problem) && !(error instanceof TypeError)) throw error;
    }
  }
}

/**
 * Return sentences about what a model predicts, and how good it is beside guessing.
 * @param {any} state
 * @returns {string[]}
 */
export function sentencesOf(state) {
  const stats = state.heads[state.serve];
  if (!stats || !state.sequence) return ["Nothing is known yet: the model has no samples."];
  return stats.scores ? ofClasses(stats) : ofNumbers(stats);
}

/** @param {any} stats */
function ofClasses(stats) {
  const { recent } = stats.scores;
  const labels = recent.confusion ? recent.confusion.labels : Object.keys(recent.classes);
  const named = labels.slice(0, LABELS_NAMED).join(", ");
  const more = labels.length > LABELS_NAMED ? " and others" : "";
  const told = [`It predicts one of ${shown(labels.length)} labels: ${named}${more}.`];
  if (!recent.samples) return told;
  const gain = recent.accuracy - recent.majority;
  const than = gain > 0 ? "is right more often than" : "is no better than";
  told.push(
    `Of its last ${shown(recent.samples)} predictions, each made before the label was known, ${percent(recent.accuracy)} ` +
      `were right. It ${than} always guessing the most frequent label, which is right in ${percent(recent.majority)}.`,
  );
  const rare = rarest(recent);
  if (rare) {
    const [label, { recall, precision, support }] = rare;
    const right = precision === null ? "It never predicted it." : `When it says ${label}, it is right in ${percent(precision)}.`;
    told.push(`Of the ${shown(support)} that were ${label}, the rarest label, it found ${percent(recall)}. ${right}`);
  }
  if (recent.roc_auc !== null) {
    told.push(
      `Of two rows with different labels it ranks the right one higher in ${percent(recent.roc_auc)} of cases ` +
        "(ROC AUC; guessing: 50%).",
    );
  }
  return told;
}

/**
 * @param {any} scores
 * @returns {[string, any] | undefined}
 */
function rarest(scores) {
  /** @type {[string, any][]} */
  const came = Object.entries(scores.classes).filter(([, one]) => one.support > 0);
  came.sort(([, a], [, b]) => a.support - b.support);
  return came.length > 1 ? came[0] : undefined;
}

/** @param {any} stats */
function ofNumbers(stats) {
  const { recent_mae: error, recent_running_mean_mae: mean } = stats.prequential ?? {};
  const told = ["It predicts a number."];
  if (typeof error !== "number") return told;
  const less = mean > 0 ? ` That is ${percent(Math.abs(1 - error / mean))} ${error <= mean ? "less" : "more"}.` : "";
  told.push(
    `Its last 1,000 predictions, each made before the number was known, were off by ${shown(error)} in the mean. ` +
      `Always guessing the mean so far would be off by ${shown(mean)}.${less}`,
  );
  return told;
}

/**
 * Return what to look at: warnings, and when predictions became worse.
 * @param {any} state
 * @returns {string[]}
 */
function remarksOf(state) {
  const remarks = (state.warnings ?? []).map((/** @type {any} */ one) => `${one.message}.`.replace(/\.\.$/, "."));
  const changes = state.heads[state.serve]?.changes ?? [];
  if (changes.length) {
    const last = changes[changes.length - 1];
    remarks.push(
      `Its predictions became worse at sample ${shown(last.sequence)}` +
        `${changes.length > 1 ? ` (${shown(changes.length)} such changes are known)` : ""}: ` +
        "what is learned may have changed since.",
    );
  }
  return remarks;
}

/** @param {any} explanation */
function reasonsText(explanation) {
  const gradient = explanation?.gradient ?? [];
  const values = (explanation?.values ?? []).map((/** @type {any} */ one) => one.feature);
  const names = [...gradient.map((/** @type {any} */ one) => one.feature), ...values].map((one) =>
    typeof one === "number" ? `feature ${one + 1}` : one,
  );
  const different = [...new Set(names)].slice(0, REASONS);
  return different.length ? `For the last row, these columns matter most: ${different.join(", ")}.` : "";
}

/** @param {any} scores */
function showConfusion(scores) {
  const place = byId("confusion", HTMLElement);
  place.hidden = !scores?.confusion || !scores.samples;
  if (place.hidden) return;
  const { labels, counts } = scores.confusion;
  const names = labels.map(String);
  fill(byId("confusion-columns", HTMLElement), [
    headRow(["Label", ...names.map((/** @type {string} */ name) => `said ${name}`), "Found", "Right when said"]),
  ]);
  const classes = Object.values(scores.classes);
  const rows = counts.map((/** @type {number[]} */ line, /** @type {number} */ i) => {
    const total = line.reduce((sum, n) => sum + n, 0);
    const cells = line.map((n, j) => {
      const cell = number(shown(n));
      if (n) cell.className = `number ${i === j ? "hit" : "miss"}`;
      cell.style.setProperty("--share", String(total ? n / total : 0));
      return cell;
    });
    const of = /** @type {any} */ (classes[i]);
    return row(names[i], ...cells, number(percent(of.recall)), number(percent(of.precision)));
  });
  fill(byId("confusion-rows", HTMLElement), rows);
}

/** @param {any[] | null} columns */
function showColumns(columns) {
  const place = byId("columns", HTMLElement);
  place.hidden = !columns?.length;
  if (!columns) return;
  const rows = columns.map((one) => {
    const range = one.range ? one.range.map(bound).join(" to ") : "";
    return row(
      one.name,
      element("td", one.why ? { title: one.why } : {}, one.kind),
      one.why ?? "",
      number("missing" in one ? percent(one.missing) : ""),
      examples(one).join(", "),
      range,
      number(typeof one.distinct === "number" ? shown(one.distinct) : ""),
    );
  });
  fill(byId("column-rows", HTMLElement), rows);
}

/**
 * Return the examples of a column, numbers with about four digits.
 * @param {any} column
 */
function examples(column) {
  /** @type {unknown[]} */
  const given = column.examples ?? [];
  return given.map((value) => (column.kind === "number" ? shown(Number(value)) : String(value)));
}

/**
 * Return a bound of a range, a number or a time.
 * @param {number | string} value
 */
function bound(value) {
  return typeof value === "string" ? value.slice(0, 19).replace("T", " ") : shown(value);
}
