// The models that follow this one, side by side with it, and the exchange of the two.

import { call, modelPath } from "./api.js";
import { byId, confirmed, element, fill, row } from "./dom.js";
import { score, shown } from "./numbers.js";

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
      `The model ${this.name} becomes what ${challenger} is, and ${challenger} what ${this.name} ` +
      "is. Going back to the snapshot that is made first undoes it.";
    // Another exchange in the meantime would make this one undo it.
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
  const better = one.better === "challenger" ? "✓ " : one.better === "champion" ? "✗ " : "";
  return row(
    one.model,
    one.status === "ok" ? shown(one.lag) : one.status,
    shown(one.samples),
    score(kind, one.loss),
    score(kind, one.champion_loss),
    better + shown(one.difference),
    one.interval ? `${shown(low)} and ${shown(high)}` : "–",
    promote,
  );
}
