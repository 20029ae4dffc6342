// A model's plots over time, and the marks in them.

import { Chart } from "./charts.js";
import { byId, element, fill } from "./dom.js";
import { duration, roundPercent, score, shown } from "./numbers.js";
import { Series } from "./series.js";

// The lines of rules that learn nothing, which are thinner than those of heads.
/** @type {("dotted" | "dashed")[]} */
const DASHES = ["dotted", "dashed"];
const RULES = {
  majority: "majority class",
  last_label: "last label again",
  running_mean: "running mean",
  last_value: "last value again",
};

export class Timelines {
  constructor() {
    this.series = new Series();
    /** @type {Chart[]} */
    this.charts = [];
    /** The description of the charts; when it changes, they are created again. */
    this.description = "";
    this.place = byId("plots", HTMLElement);
    this.span = byId("span", HTMLSelectElement);
    /** @type {any} */
    this.state = undefined;
    this.span.addEventListener("change", () => this.#draw());
  }

  /** Forget everything before another model is shown. */
  reset() {
    this.series = new Series();
    this.state = undefined;
    this.#clear();
    byId("marks", HTMLElement).replaceChildren();
  }

  /**
   * Add a state of the model.
   * @param {any} state
   */
  add(state) {
    this.state = state;
    const time = Date.parse(state.time) / 1000;
    this.series.add(time, { sequence: state.sequence, ...state.values });
    this.#draw();
  }

  #draw() {
    if (!this.state) return;
    const marks = this.#marks();
    const made = marks.map((mark) => element("li", {}, mark.label));
    fill(byId("marks", HTMLElement), made);
    const plots = plotsOf(this.state);
    const description = JSON.stringify(plots);
    if (description !== this.description) {
      this.#clear();
      this.charts = plots.map((plot) => new Chart(this.place, plot));
      this.description = description;
    }
    const seconds = Number(this.span.value);
    const since = seconds ? Date.now() / 1000 - seconds : 0;
    for (const chart of this.charts) {
      chart.draw(this.series, since, marks.filter((mark) => mark.time !== undefined));
    }
  }

  #clear() {
    for (const chart of this.charts) chart.close();
    this.charts = [];
    this.description = "";
  }

  /** Return marks where the served head became worse, and where the model was rolled back. */
  #marks() {
    const { state, series } = this;
    const changes = state.heads[state.serve]?.changes ?? [];
    /** @type {any[]} */
    const marks = changes.map((/** @type {any} */ change) => ({
      time: series.timeOf(change.sequence),
      label: `Change at ${shown(change.sequence)}: ${lossText(change)}`,
    }));
    if (state.rolled_back) {
      const { to, at } = state.rolled_back;
      const label = `Rolled back to ${shown(to)} at ${shown(at)}`;
      marks.push({ time: series.timeOf(at), label });
    }
    return marks;
  }
}

/** @param {any} change */
function lossText(change) {
  return `mean loss from ${shown(change.before)} to ${shown(change.after)}`;
}

/**
 * Return the plots for a state: scores, rates, latencies, and the size of the set that answers.
 * @param {any} state
 */
function plotsOf(state) {
  const { drawn, serve, values } = state;
  const heads = Object.keys(state.heads).sort((a, b) => Number(b === serve) - Number(a === serve));
  /** @param {string[]} having @param {string} field */
  const linesOf = (having, field) =>
    having.map((head) => ({
      name: `${head}.${field}`,
      label: head.replace("_", " "),
      color: `series-${(heads.indexOf(head) % 4) + 1}`,
    }));
  // A head that nobody teaches has no line.
  const scored = heads.filter((head) => typeof values[`${head}.${drawn}`] === "number");
  const rules = Object.entries(RULES)
    .filter(([rule]) => `${rule}.${drawn}` in values)
    .map(([rule, label], i) => ({ name: `${rule}.${drawn}`, label, color: `rule-${i + 1}`, dash: DASHES[i % 2] }));
  const title = drawn === "accuracy" ? "Accuracy" : "Mean absolute error";
  const found = [
    {
      title: `${title} of predictions made before learning, over the last 1,000 samples`,
      lines: [...linesOf(scored.length ? scored : heads, drawn), ...rules],
      wide: true,
      mark: drawn === "accuracy" ? roundPercent : shown,
      show: (/** @type {number} */ value) => score(drawn, value),
    },
    {
      title: "Samples learned and rows predicted per second",
      lines: [
        { name: "samples_per_second", label: "learned", color: "series-1" },
        { name: "rows_per_second", label: "predicted", color: "series-2" },
      ],
      show: shown,
    },
    {
      title: "Latency, mean over five seconds",
      lines: [
        { name: "learn_seconds", label: "learn", color: "series-1" },
        { name: "predict_seconds", label: "predict", color: "series-2" },
      ],
      show: duration,
    },
  ];
  for (const [field, title] of [["size", "Size of the working set"], ["gap", "Duality gap"]]) {
    if (`${serve}.${field}` in values) found.push({ title, lines: linesOf([serve], field), show: shown });
  }
  return found;
}
