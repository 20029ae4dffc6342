// The list of models, and the form that creates one.

import { Problem, call, modelPath } from "./api.js";
import { badge, byId, element, fill, number, row } from "./dom.js";
import { shown } from "./numbers.js";

const REFRESH_MS = 3000;

export class ModelList {
  /** @param {import("./model.js").Report} report */
  constructor(report) {
    this.report = report;
    this.place = byId("models", HTMLElement);
    /** @type {Map<string, {sequence: number, time: number}>} */
    this.before = new Map();
    this.busy = false;
    byId("create-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#create(/** @type {HTMLFormElement} */ (event.target));
    });
    setInterval(() => void this.refresh(), REFRESH_MS);
  }

  /** @param {boolean} visible */
  show(visible) {
    this.place.hidden = !visible;
    void this.refresh();
  }

  /** Fetch the list while it is visible. */
  async refresh() {
    if (this.place.hidden || document.hidden || this.busy) return;
    this.busy = true;
    try {
      const { models } = await call("GET", "v1/models");
      this.report.connection("live");
      fill(byId("model-rows", HTMLElement), models.map((/** @type {any} */ model) => this.#row(model)));
      byId("no-models", HTMLElement).hidden = models.length > 0;
    } catch (error) {
      if (error instanceof TypeError) {
        this.report.connection("The server does not answer; trying again.", true);
      } else if (error instanceof Problem && error.status === 503) {
        this.report.connection(error.message, true);
      } else {
        this.report.connection("refused", true);
        this.report.fail(error);
      }
    } finally {
      this.busy = false;
    }
  }

  /** @param {any} model */
  #row(model) {
    const { model: name, sequence, status, features } = model;
    const now = Date.now();
    const before = this.before.get(name);
    this.before.set(name, { sequence, time: now });
    const rate = before && (1000 * Math.max(0, sequence - before.sequence)) / (now - before.time);
    const link = element("a", { href: `#/${encodeURIComponent(name)}` }, name);
    const rateText = shown(rate && Math.round(rate));
    const numbers = [shown(sequence), rateText, shown(features)].map((text) => number(text));
    return row(link, badge(status, status), ...numbers);
  }

  /** @param {HTMLFormElement} form */
  async #create(form) {
    const fields = new FormData(form);
    const name = String(fields.get("name"));
    const task = fields.get("task");
    const spec = task === "regression" ? { task, working_set: null } : {};
    try {
      await call("PUT", modelPath(name), { body: JSON.stringify(spec) });
      form.reset();
      location.hash = `/${encodeURIComponent(name)}`;
    } catch (error) {
      this.report.fail(error);
    }
  }
}
