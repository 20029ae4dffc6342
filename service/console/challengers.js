// The table of the models that follow this one, compared with it, and their promotion.

import { call, modelPath } from "./api.js";
import { badge, byId, confirmed, element, fill, number, row } from "./dom.js";
import { duration, percent, score, shown } from "./numbers.js";

export class Challengers {
  /** @param {(error: unknown) => void} fail */
  constructor(fail) {
    this.fail = fail;
    this.name = "";
    this.epoch = "";
    this.section = byId("challengers", HTMLElement);
    this.rows = byId("challenger-rows", HTMLElement);
    this.dialog = byId("promote-dialog", HTMLDialogElement);
    this.rows.addEventListener("click", (event) => {
      const pressed = event.target;
      if (!(pressed instanceof HTMLButtonElement)) return;
      void this.#promote(/** @type {string} */ (pressed.dataset.model));
    });
  }

  /** @param {string} name */
  reset(name) {
    this.name = name;
    this.section.hidden = true;
    this.rows.replaceChildren();
  }

  /** @param {any} state */
  show(state) {
    this.epoch = state.epoch;
    this.section.hidden = !state.challengers.length;
    const made = state.challengers.map((/** @type {any} */ one) => challengerRow(state.task, one));
    fill(this.rows, made);
  }

  /** @param {string} challenger */
  async #promote(challenger) {
    byId("promote-text", HTMLElement).textContent =
      `The models ${this.name} and ${challenger} exchange their specs and states. A snapshot is saved ` +
      `first; a rollback to it undoes the promotion.`;
    // After another promotion in the meantime, this one would undo it.
    const headers = { "If-Match": `"${this.epoch}"` };
    if (!(await confirmed(this.dialog))) return;
    try {
      const body = JSON.stringify({ model: challenger });
      await call("POST", modelPath(this.name, "/promote"), { body, headers });
    } catch (error) {
      this.fail(error);
    }
  }
}

/**
 * @param {string} task
 * @param {any} one
 */
function challengerRow(task, one) {
  const kind = task === "regression" ? "mae" : "accuracy";
  const promote = element("button", { type: "button", "data-model": one.model }, "Promote");
  const [low, high] = one.interval ?? [];
  const link = element("a", { href: `#/${encodeURIComponent(one.model)}` }, one.model);
  return row(
    link,
    one.status === "ok" ? number(shown(one.lag)) : badge("broken", one.status),
    number(shown(one.samples)),
    number(score(kind, one.loss)),
    number(score(kind, one.champion_loss)),
    number(percent(one.difference)),
    element("td", {}, one.interval ? `${percent(low)} to ${percent(high)} ` : "– ", verdict(one.better)),
    number(duration(one.cost_microseconds === null ? null : one.cost_microseconds / 1e6)),
    promote,
  );
}

/**
 * Show which model is better, once that is certain.
 * @param {string | null} better
 */
function verdict(better) {
  if (better === "challenger") return badge("right", "✓ better");
  if (better === "champion") return badge("wrong", "✗ worse");
  return badge("waiting", "not sure yet");
}
