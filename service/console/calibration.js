// The calibration of the heads: the reliability of their probabilities, and the coverage of their sets.

import { Curve } from "./charts.js";
import { byId, fill, headRow, number, row } from "./dom.js";
import { percent, shown } from "./numbers.js";

const CONFIDENCE = 0.9;
const CAPTIONS = {
  classification:
    "How often the last 1,000 predictions were right, by their probability. On the dashed line, " +
    "probabilities are exactly right.",
  regression:
    "How often the prediction intervals of the last 1,000 predictions contained the number, by " +
    "their confidence. On the dashed line, coverage is exactly the confidence.",
};

export class Calibration {
  constructor() {
    this.place = byId("reliability", HTMLElement);
    /** @type {Curve | undefined} */
    this.curve = undefined;
  }

  /** Forget everything before another model is shown. */
  reset() {
    this.curve?.close();
    this.curve = undefined;
  }

  /** @param {any} state */
  show(state) {
    const task = state.task === "regression" ? "regression" : "classification";
    byId("calibration-about", HTMLElement).textContent = CAPTIONS[task];
    fill(byId("calibration-columns", HTMLElement), [headRow(["Head", ...NUMBERS[task].map(([name]) => name)])]);
    const rows = Object.entries(state.heads).map(([head, stats]) => {
      const { calibration } = /** @type {any} */ (stats);
      const numbers = NUMBERS[task].map(([, text]) => number(text(calibration ?? {})));
      return row(head.replace("_", " "), ...numbers);
    });
    fill(byId("calibration-rows", HTMLElement), rows);
    this.#draw(state, task);
  }

  /**
   * @param {any} state
   * @param {"classification" | "regression"} task
   */
  #draw(state, task) {
    const points = pointsOf(state.heads[state.serve]?.calibration ?? {}, task);
    const labels = LABELS[task];
    this.curve ??= new Curve(this.place, labels[0], labels[1]);
    this.curve.draw(points);
  }
}

/** @type {Record<"classification" | "regression", [string, string]>} */
const LABELS = {
  classification: ["Probability", "Right"],
  regression: ["Confidence", "Coverage"],
};

/**
 * Return the points [claimed, observed] of the served head.
 * @param {any} calibration
 * @param {string} task
 * @returns {[number, number][]}
 */
function pointsOf(calibration, task) {
  if (task === "regression") {
    return (calibration.intervals ?? [])
      .filter((/** @type {any} */ one) => one.recent_coverage !== null)
      .map((/** @type {any} */ one) => [one.confidence, one.recent_coverage]);
  }
  return (calibration.recent_reliability ?? []).map((/** @type {any} */ one) => [
    one.probability,
    one.right,
  ]);
}

/**
 * @param {any} calibration
 * @param {string} kind
 */
function covering(calibration, kind) {
  return (calibration[kind] ?? []).find((/** @type {any} */ one) => one.confidence === CONFIDENCE) ?? {};
}

/** @type {Record<"classification" | "regression", [string, (calibration: any) => string][]>} */
const NUMBERS = {
  classification: [
    ["Brier score", (of) => shown(of.recent_brier_score)],
    ["Calibration error", (of) => percent(of.recent_calibration_error)],
    ["Log loss", (of) => shown(of.recent_log_loss)],
    ["Coverage of 90% sets", (of) => percent(covering(of, "sets").recent_coverage)],
    ["Classes per set", (of) => shown(covering(of, "sets").mean_size)],
  ],
  regression: [
    ["Coverage of 90% intervals", (of) => percent(covering(of, "intervals").recent_coverage)],
    ["Mean width", (of) => shown(covering(of, "intervals").mean_width)],
  ],
};
