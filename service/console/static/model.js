// One model, live.

import { Problem, call, listen, modelPath } from "./api.js";
import { Certainty } from "./certainty.js";
import { Challengers } from "./challengers.js";
import { byId } from "./dom.js";
import { showFacts } from "./facts.js";
import { showHeads } from "./heads.js";
import { showLatest } from "./latest.js";
import { LearnForm } from "./learn.js";
import { Learners } from "./learners.js";
import { Plotted } from "./plotted.js";
import { PredictForm } from "./predict.js";
import { Snapshots } from "./snapshots.js";

// After a longer silence the numbers between are read from the server.
const SILENCE_MS = 15000;

/** @typedef {{fail: (error: unknown) => void, connection: (text: string, lost?: boolean) => void}} Report */

export class ModelView {
  /** @param {Report} report */
  constructor(report) {
    this.report = report;
    this.place = byId("model", HTMLElement);
    this.plotted = new Plotted();
    this.learners = new Learners(report.fail);
    this.certainty = new Certainty();
    this.predicting = new PredictForm(report.fail);
    this.learning = new LearnForm(report.fail);
    this.challengers = new Challengers(report.fail);
    this.snapshots = new Snapshots(report.fail);
    this.listening = new AbortController();
    this.heard = 0;
  }

  /**
   * Show a model until `close`.
   * @param {string} name
   */
  async open(name) {
    this.close();
    this.place.hidden = false;
    const title = byId("model-name", HTMLElement);
    title.textContent = name;
    title.focus({ preventScroll: true });
    this.plotted.reset();
    this.certainty.reset();
    const parts = [this.learners, this.predicting, this.learning, this.challengers, this.snapshots];
    for (const part of parts) part.reset(name);
    byId("facts", HTMLElement).replaceChildren();
    byId("status", HTMLElement).replaceChildren();
    byId("latest-rows", HTMLElement).replaceChildren();
    byId("foretold", HTMLElement).hidden = true;
    const { signal } = (this.listening = new AbortController());
    const listener = {
      state: (/** @type {any} */ state) => void this.#show(name, state, signal),
      lost: () => this.report.connection("The server does not answer; trying again.", true),
      gone: (/** @type {Error} */ error) => this.report.fail(error),
    };
    await this.#load(name, signal);
    await listen(name, listener, signal);
  }

  /** Listen no more. */
  close() {
    this.listening.abort();
    this.learning.reset("");
    this.learners.reset("");
    this.place.hidden = true;
    this.heard = 0;
  }

  /**
   * Read the numbers of the last hours.
   * @param {string} name
   * @param {AbortSignal} signal
   */
  async #load(name, signal) {
    try {
      const history = await call("GET", modelPath(name, "/metrics/history"), { signal });
      this.plotted.series.load(history);
      this.heard = Date.now();
    } catch (error) {
      if (error instanceof Problem && error.status !== 503 && !signal.aborted) this.report.fail(error);
    }
  }

  /**
   * @param {string} name
   * @param {any} state
   * @param {AbortSignal} signal
   */
  async #show(name, state, signal) {
    if (Date.now() - this.heard > SILENCE_MS) await this.#load(name, signal);
    if (signal.aborted) return;
    this.heard = Date.now();
    this.report.connection("live");
    const notice = byId("notice", HTMLElement);
    notice.textContent = state.notice ?? state.warning ?? "";
    notice.hidden = !notice.textContent;
    showFacts(state);
    showLatest(state);
    this.plotted.add(state);
    showHeads(state);
    this.learners.show(state);
    this.certainty.show(state);
    this.predicting.show(state);
    this.challengers.show(state);
    this.snapshots.show(state);
  }
}
