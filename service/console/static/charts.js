// Plots over time, drawn by uPlot, which plots.js puts into the window if it is installed.

import { element } from "./dom.js";

/** @typedef {{name: string, label: string, color: string, dashed?: boolean}} Line */
/** @typedef {{title: string, lines: Line[], wide?: boolean, show: (value: number) => string}} Plot */
/** @typedef {{time: number, label: string}} Mark */

/** @type {any} */
const UPlot = /** @type {any} */ (globalThis).uPlot;
const HEIGHT = 220;
const AXIS_WIDTH = 76;
const MARK_DASH = [3, 3];
const LEAST_SPAN_SECONDS = 60;
const DAY_SECONDS = 86_400;
// Between two times on the axis, in seconds.
const STEPS = [5, 10, 15, 30, 60, 300, 600, 1800, 3600, 7200, 21_600, DAY_SECONDS, 7 * DAY_SECONDS];

/** Whether plots can be drawn. */
export const installed = UPlot !== undefined;

/** @param {string} name */
function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/**
 * A time of the day.
 * @param {number | null} at in seconds since 1970
 */
function clock(at) {
  if (at === null) return "–";
  return new Date(1000 * at).toLocaleTimeString("en-GB");
}

/** One plot of a series, with marks at some times. */
export class Chart {
  /**
   * @param {HTMLElement} place
   * @param {Plot} plot
   */
  constructor(place, plot) {
    this.plot = plot;
    /** @type {Mark[]} */
    this.marks = [];
    this.figure = element("figure", plot.wide ? { class: "wide" } : {});
    this.figure.append(element("figcaption", {}, plot.title));
    place.append(this.figure);
    this.drawn = new UPlot(this.#options(), [[], ...plot.lines.map(() => [])], this.figure);
    this.resizing = new ResizeObserver(() => {
      this.drawn.setSize({ width: this.#width(), height: HEIGHT });
    });
    this.resizing.observe(this.figure);
  }

  /**
   * Draw the series from a time on.
   * @param {import("./series.js").Series} series
   * @param {number} since
   * @param {Mark[]} marks
   */
  draw(series, since, marks) {
    const first = Math.max(0, series.time.findIndex((time) => time >= since));
    const columns = this.plot.lines.map((line) => series.column(line.name).slice(first));
    this.marks = marks;
    this.drawn.setData([series.time.slice(first), ...columns]);
  }

  /** Take the plot away. */
  close() {
    this.resizing.disconnect();
    this.drawn.destroy();
    this.figure.remove();
  }

  #width() {
    return Math.max(this.figure.clientWidth, 200);
  }

  #options() {
    const { lines, show } = this.plot;
    const axis = { stroke: color("faint"), grid: { stroke: color("line") }, ticks: { stroke: color("line") } };
    /** @param {unknown} _ @param {number[]} values */
    const labels = (_, values) => values.map((value) => show(value));
    const times = {
      ...axis,
      incrs: STEPS,
      space: 80,
      values: (/** @type {unknown} */ _, /** @type {number[]} */ at) => at.map(clock),
    };
    /** @param {unknown} _ @param {number | null} from @param {number | null} to */
    const span = (_, from, to) => {
      const end = to ?? Date.now() / 1000;
      return [Math.min(from ?? end, end - LEAST_SPAN_SECONDS), end];
    };
    return {
      width: this.#width(),
      height: HEIGHT,
      legend: { live: true },
      cursor: { drag: { x: false, y: false } },
      scales: { x: { range: span } },
      axes: [times, { ...axis, size: AXIS_WIDTH, values: labels }],
      series: [
        { label: "Time", value: (/** @type {unknown} */ _, /** @type {number | null} */ at) => clock(at) },
        ...lines.map((line) => ({
          label: line.label,
          stroke: color(line.color),
          width: line.dashed ? 1 : 2,
          dash: line.dashed ? [5, 4] : undefined,
          spanGaps: true,
          points: { show: false },
          value: (/** @type {unknown} */ _, /** @type {number | null} */ value) =>
            value === null ? "–" : show(value),
        })),
      ],
      hooks: { draw: [(/** @type {any} */ drawn) => this.#drawMarks(drawn)] },
    };
  }

  /** @param {any} drawn */
  #drawMarks(drawn) {
    const { ctx, bbox } = drawn;
    ctx.save();
    ctx.strokeStyle = color("bad");
    ctx.lineWidth = 2;
    ctx.setLineDash(MARK_DASH);
    for (const mark of this.marks) {
      const x = drawn.valToPos(mark.time, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }
}
