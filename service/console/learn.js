// The form that learns a CSV file part by part, and lists the lines that the server refuses.

import { Problem, call, modelPath } from "./api.js";
import { fieldsOf, firstLines, labelOf, looksLikeHeader, partsOf } from "./csv.js";
import { byId, element, fill, row } from "./dom.js";
import { shown } from "./numbers.js";

// With more refused lines, the file is probably the wrong one.
const MOST_REFUSED = 200;
const MOST_TRIES = 20;
const PAUSE_SECONDS = 1;
const PREVIEWED = 3;

export class LearnForm {
  /** @param {(error: unknown) => void} fail */
  constructor(fail) {
    this.fail = fail;
    this.name = "";
    /** @type {AbortController | undefined} */
    this.running = undefined;
    this.form = byId("learn-form", HTMLFormElement);
    this.input = byId("csv", HTMLInputElement);
    this.header = byId("csv-header", HTMLInputElement);
    this.label = byId("csv-label", HTMLSelectElement);
    /** The first lines of the chosen file. @type {string[]} */
    this.lines = [];
    this.header.addEventListener("change", () => this.#preview());
    this.label.addEventListener("change", () => this.#allow());
    this.progress = byId("learn-progress", HTMLProgressElement);
    this.learned = byId("learned", HTMLElement);
    this.refused = byId("refused-lines", HTMLElement);
    this.stop = byId("stop", HTMLButtonElement);
    this.stop.addEventListener("click", () => this.running?.abort());
    this.input.addEventListener("change", () => void this.#chosen());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#learn();
    });
    this.#takeDrops(byId("drop", HTMLElement));
  }

  /** @param {string} name */
  reset(name) {
    this.running?.abort();
    this.name = name;
    this.form.reset();
    this.lines = [];
    this.#preview();
    this.progress.hidden = true;
    this.learned.textContent = "";
    this.refused.replaceChildren();
  }

  /** @param {HTMLElement} place */
  #takeDrops(place) {
    place.addEventListener("dragover", (event) => {
      event.preventDefault();
      place.classList.add("over");
    });
    place.addEventListener("dragleave", () => place.classList.remove("over"));
    place.addEventListener("drop", (event) => {
      event.preventDefault();
      place.classList.remove("over");
      if (event.dataTransfer?.files.length) {
        this.input.files = event.dataTransfer.files;
        void this.#chosen();
      }
    });
  }

  #button() {
    const button = this.form.querySelector("button");
    if (!button) throw new Error("the form has no button");
    return button;
  }

  async #chosen() {
    const file = this.input.files?.[0];
    this.lines = file ? await firstLines(file) : [];
    const [first, second] = this.lines;
    if (file) this.header.checked = looksLikeHeader(first ?? "", second ?? "");
    this.#preview();
  }

  /** Show the first rows, and the columns that may have the label. */
  #preview() {
    const [first] = this.lines;
    byId("csv-label-choice", HTMLElement).hidden = byId("csv-preview", HTMLElement).hidden = !first;
    const fields = first ? fieldsOf(first) : [];
    const names = this.header.checked ? fields : fields.map((_, i) => `column ${i + 1}`);
    const known = this.header.checked ? labelOf(names) : names.length - 1;
    const options = names.map((name, i) => element("option", { value: String(i) }, name || `column ${i + 1}`));
    this.label.replaceChildren(element("option", { value: "" }, "choose a column"), ...options);
    this.label.value = known >= 0 ? String(known) : "";
    const records = this.lines.slice(Number(this.header.checked)).filter((line) => line.trim() !== "");
    const head = element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)));
    fill(byId("csv-columns", HTMLElement), [head]);
    fill(byId("csv-rows", HTMLElement), records.slice(0, PREVIEWED).map((line) => row(...fieldsOf(line))));
    this.#allow();
  }

  /** Let the file be learned once it and its label are chosen. */
  #allow() {
    this.#button().disabled = !this.lines.length || this.label.value === "";
  }

  /** Return the query that names the label's column, or has its number where it has no name. */
  #query() {
    const place = Number(this.label.value);
    const names = fieldsOf(this.lines[0] ?? "");
    const name = this.header.checked ? names[place] : "";
    return `?label=${encodeURIComponent(name || String(place + 1))}`;
  }

  async #learn() {
    const file = this.input.files?.[0];
    if (!file || this.running) return;
    this.running = new AbortController();
    this.refused.replaceChildren();
    this.progress.value = 0;
    this.progress.hidden = this.stop.hidden = false;
    this.#button().disabled = true;
    let learned = 0;
    try {
      learned = await this.#learnParts(file, this.running.signal);
    } catch (error) {
      if (!this.running.signal.aborted) this.fail(error);
    } finally {
      this.running = undefined;
      this.stop.hidden = true;
      this.#button().disabled = false;
    }
    return learned;
  }

  /**
   * @param {File} file
   * @param {AbortSignal} signal
   */
  async #learnParts(file, signal) {
    let [learned, bytes, header] = [0, 0, ""];
    let first = this.header.checked;
    for await (const part of partsOf(file)) {
      if (first) {
        header = part.lines.shift() ?? "";
        part.first += 1;
        first = false;
      }
      learned += await this.#learnPart(header, part, signal);
      bytes += part.bytes;
      this.progress.value = Math.min(1, bytes / Math.max(file.size, 1));
      this.#report(learned, "so far");
    }
    this.progress.value = 1;
    this.#report(learned, "in total");
    return learned;
  }

  /**
   * Learn a part without the lines that the server refuses. Returns the number of samples learned.
   * @param {string} header
   * @param {import("./csv.js").Part} part
   * @param {AbortSignal} signal
   */
  async #learnPart(header, part, signal) {
    const starts = startsOf(part);
    let left = part.lines.map((_, i) => i).filter((i) => part.lines[i].trim() !== "");
    while (left.length) {
      const records = left.map((i) => part.lines[i]);
      try {
        const body = [...(header ? [header] : []), ...records, ""].join("\n");
        const answer = await this.#send(body, signal);
        return answer.learned;
      } catch (error) {
        const wrong = error instanceof Problem ? wrongRecords(error, header, records) : new Map();
        if (!wrong.size) throw error;
        for (const [place, detail] of wrong) this.#refuse(starts[left[place]], detail);
        if (this.refused.children.length >= MOST_REFUSED) {
          throw new Error(`${MOST_REFUSED} lines were refused: is this the right file?`);
        }
        left = left.filter((_, place) => !wrong.has(place));
      }
    }
    return 0;
  }

  /**
   * Send lines under an idempotency key; repeat if the server is busy or its answer is lost.
   * @param {string} body
   * @param {AbortSignal} signal
   */
  async #send(body, signal) {
    const headers = { "Idempotency-Key": newKey() };
    for (let tries = 1; ; tries += 1) {
      try {
        const path = modelPath(this.name, `/samples${this.#query()}`);
        return await call("POST", path, { body, type: "text/csv", headers, signal });
      } catch (error) {
        const pause = error instanceof Problem ? error.retryAfter : PAUSE_SECONDS;
        if (signal.aborted || pause === undefined || tries === MOST_TRIES) throw error;
        await new Promise((resolve) => setTimeout(resolve, 1000 * pause));
      }
    }
  }

  /**
   * @param {number} line
   * @param {string} detail
   */
  #refuse(line, detail) {
    this.refused.append(element("li", {}, `Line ${line}: ${detail}`));
  }

  /**
   * @param {number} learned
   * @param {string} extent
   */
  #report(learned, extent) {
    const refused = this.refused.children.length;
    const rest = refused ? `, ${shown(refused)} ${refused === 1 ? "line" : "lines"} refused and left out` : "";
    this.learned.textContent = `${shown(learned)} samples learned ${extent}${rest}.`;
  }
}

/**
 * Return the line of the file on which each record of a part begins.
 * @param {import("./csv.js").Part} part
 */
function startsOf(part) {
  let line = part.first;
  return part.lines.map((record) => {
    const start = line;
    line += record.split("\n").length;
    return start;
  });
}

/**
 * Return the details of the refused records by their indices.
 * @param {Problem} problem
 * @param {string} header
 * @param {string[]} records
 * @returns {Map<number, string>}
 */
function wrongRecords(problem, header, records) {
  const wrong = new Map();
  for (const { line, detail } of problem.errors) {
    if (line === undefined) continue;
    let end = header ? 1 : 0;
    const place = records.findIndex((record) => {
      end += record.split("\n").length;
      return line <= end;
    });
    if (place >= 0 && !wrong.has(place)) wrong.set(place, detail ?? problem.message);
  }
  return wrong;
}

/** Return an idempotency key. randomUUID would need https. */
function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
