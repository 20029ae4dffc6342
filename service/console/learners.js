// The table of the bank's learners, and of the heads that it listens to, with their weights.

import { Problem, call, modelPath } from "./api.js";
import { bar, byId, fill, number, row } from "./dom.js";
import { shown } from "./numbers.js";

const REFRESH_MS = 5000;
// The number of rows that are shown at first.
const FIRST = 8;
// The fields that are not listed after a learner's name.
const NOT_PARAMETERS = new Set(["learner", "weight", "recent_loss", "overall_loss", "external"]);

export class Learners {
  /** @param {(error: unknown) => void} fail */
  constructor(fail) {
    this.fail = fail;
    this.name = "";
    /** @type {any[]} */
    this.learners = [];
    this.place = byId("learners", HTMLElement);
    this.all = byId("all-learners", HTMLButtonElement);
    this.all.addEventListener("click", () => {
      this.#expand(this.all.getAttribute("aria-expanded") !== "true");
      this.#draw();
    });
    setInterval(() => void this.#refresh(), REFRESH_MS);
  }

  /** @param {string} name */
  reset(name) {
    this.name = name;
    this.learners = [];
    this.place.hidden = true;
    this.#expand(false);
    this.#draw();
  }

  /** @param {any} state */
  show(state) {
    const hidden = !state.heads.adaptive?.learners;
    const opened = this.place.hidden && !hidden;
    this.place.hidden = hidden;
    if (opened) void this.#refresh();
  }

  /** Fetch the learners while the table is visible. */
  async #refresh() {
    const { name } = this;
    if (!name || this.place.hidden || document.hidden) return;
    try {
      const answer = await call("GET", modelPath(name, "/learners"));
      if (name !== this.name) return;
      this.learners = Object.values(answer.heads).flat();
      this.learners.sort((a, b) => b.weight - a.weight);
      this.#draw();
    } catch (error) {
      if (error instanceof Problem) this.fail(error);
    }
  }

  /** @param {boolean} all */
  #expand(all) {
    this.all.setAttribute("aria-expanded", String(all));
  }

  #draw() {
    const n = this.learners.length;
    const all = this.all.getAttribute("aria-expanded") === "true";
    this.all.hidden = n <= FIRST;
    this.all.textContent = all ? `Show the first ${FIRST}` : `Show all ${n}`;
    const listed = this.learners.slice(0, all ? n : FIRST);
    fill(byId("learner-rows", HTMLElement), listed.map(learnerRow));
  }
}

/** @param {any} learner */
function learnerRow(learner) {
  const parameters = Object.entries(learner)
    .filter(([name, value]) => !NOT_PARAMETERS.has(name) && value !== null)
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? shown(value) : value}`);
  const kind = learner.external ? `head ${learner.learner}` : learner.learner;
  return row(
    [String(kind).replace("_", " "), ...parameters].join(", "),
    bar(learner.weight, learner.weight.toFixed(3)),
    number(shown(learner.recent_loss)),
    number(shown(learner.overall_loss)),
  );
}
