// The live page of one model.

import { Problem, call, listen, modelPath } from "./api.js";
import { Calibration } from "./calibration.js";
import { Challengers } from "./challengers.js";
import { byId } from "./dom.js";
import { showFacts } from "./facts.js";
import { showHeads } from "./heads.js";
import { showLatest } from "./latest.js";
import { LearnForm } from "./learn.js";
import { Learners } from "./learners.js";
import { Timelines } from "./timelines.js";
import { PredictForm } from "./predict.js";
import { Snapshots } from "./snapshots.js";
import { Summary } from "./summary.js";

// After a longer gap between events, the numbers in between are fetched from the server.
const GAP_MS = 15000;

/** @typedef {{fail: (error: unknown) => void, connection: (text: string, lost?: boolean) => void}} Report */

export class ModelView {
  /** @param {Report} report */
  constructor(report) {
    this.report = report;
    this.place = byId("model", HTMLElement);
    this.summary = new Summary();
    this.timelines = new Timelines();
    this.learners = new Learners(report.fail);
    this.calibration = new Calibration();
    this.predicting = new PredictForm(report.fail);
    this.learning = new LearnForm(report.fail);
    this.challengers = new Challengers(report.fail);
    this.snapshots = new Snapshots(report.fail);
    this.listening = new AbortController();
    this.lastEvent = 0;
  }

  /**
   * Show a model until `close` is called.
   * @param {string} name
   */
  async open(name) {
    this.close();
    this.place.hidden = false;
    const title = byId("model-name", HTMLElement);
    title.textContent = name;
    title.focus({ preventScroll: true });
    this.timelines.reset();
    this.calibration.reset();
    const parts = [this.summary, this.learners, this.predicting, this.learning, this.challengers, this.snapshots];
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

  /** Stop showing the model. */
  close() {
    this.listening.abort();
    this.learning.reset("");
    this.learners.reset("");
    this.place.hidden = true;
    this.lastEvent = 0;
  }

  /**
   * Fetch the numbers of the last hours.
   * @param {string} name
   * @param {AbortSignal} signal
   */
  async #load(name, signal) {
    try {
      const history = await call("GET", modelPath(name, "/metrics/history"), { signal });
      this.timelines.series.load(history);
      this.lastEvent = Date.now();
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
    if (Date.now() - this.lastEvent > GAP_MS) await this.#load(name, signal);
    if (signal.aborted) return;
    this.lastEvent = Date.now();
    this.report.connection("live");
    const notice = byId("notice", HTMLElement);
    notice.textContent = state.notice ?? state.warning ?? "";
    notice.hidden = !notice.textContent;
    this.summary.show(state);
    showFacts(state);
    showLatest(state);
    this.timelines.add(state);
    showHeads(state);
    this.learners.show(state);
    this.calibration.show(state);
    this.predicting.show(state);
    this.challengers.show(state);
    this.snapshots.show(state);
  }
}
