// The table of a model's snapshots, with a rollback to each.

import { Problem, call, modelPath } from "./api.js";
import { byId, confirmed, element, number, row } from "./dom.js";
import { score, shown } from "./numbers.js";

export class Snapshots {
  /** @param {(error: unknown) => void} fail */
  constructor(fail) {
    this.fail = fail;
    this.name = "";
    /** @type {any} */
    this.state = undefined;
    this.rows = byId("snapshot-rows", HTMLElement);
    this.dialog = byId("rollback-dialog", HTMLDialogElement);
    byId("snapshot", HTMLButtonElement).addEventListener("click", () => void this.#make());
  }

  /** @param {string} name */
  reset(name) {
    this.name = name;
    this.state = undefined;
    this.rows.replaceChildren();
  }

  /** @param {any} state */
  show(state) {
    const before = this.state;
    this.state = state;
    const changed =
      before?.snapshot_sequence !== state.snapshot_sequence || before?.epoch !== state.epoch;
    if (changed) void this.refresh();
  }

  /** Fetch the list. */
  async refresh() {
    const name = this.name;
    try {
      const history = await call("GET", modelPath(name, "/history"));
      if (name !== this.name) return;
      this.rows.replaceChildren(...history.snapshots.map((/** @type {any} */ one) => this.#row(one)));
    } catch (error) {
      if (error instanceof Problem) this.fail(error);
    }
  }

  /** @param {any} snapshot */
  #row(snapshot) {
    const { drawn, serve } = this.state;
    const back = element("button", { type: "button" }, "Roll back to this one");
    back.addEventListener("click", () => void this.#goBack(snapshot));
    return row(
      number(shown(snapshot.sequence)),
      new Date(snapshot.written).toLocaleString(),
      number(score(drawn, snapshot.scores?.[serve]?.[`recent_${drawn}`])),
      number(shown(snapshot.samples_since)),
      back,
    );
  }

  async #make() {
    try {
      await call("POST", modelPath(this.name, "/snapshot"));
      await this.refresh();
    } catch (error) {
      this.fail(error);
    }
  }

  /** @param {any} snapshot */
  async #goBack(snapshot) {
    const { sequence, epoch } = this.state;
    const forgotten = sequence - snapshot.sequence;
    byId("rollback-text", HTMLElement).textContent =
      `The model ${this.name} returns to its state at sequence ${shown(snapshot.sequence)} and ` +
      `forgets the ${shown(forgotten)} samples after it. Save a snapshot first to be able to undo this.`;
    if (!(await confirmed(this.dialog))) return;
    try {
      const body = JSON.stringify({ sequence: snapshot.sequence });
      // After another rollback in the meantime, this one would have a different effect.
      const headers = { "If-Match": `"${epoch}"` };
      await call("POST", modelPath(this.name, "/rollback"), { body, headers });
      await this.refresh();
    } catch (error) {
      this.fail(error);
    }
  }
}
