// Plots drawn by uPlot, which plots.js defines as a global if it is installed.

import { element } from "./dom.js";
import { roundPercent } from "./numbers.js";

/** @typedef {{name: string, label: string, color: string, dash?: "dotted" | "dashed"}} Line */
/** @typedef {{title: string, lines: Line[], wide?: boolean, show: (value: number) => string,
 *   mark?: (value: number) => string}} Plot */
/** @typedef {{time: number, label: string}} Mark */

/** @type {any} */
const UPlot = /** @type {any} */ (globalThis).uPlot;
const HEIGHT = 220;
const CURVE_HEIGHT = 260;
const AXIS_WIDTH = 68;
const FONT = "12px system-ui, sans-serif";
const LABEL_HEIGHT = 20;
const MARK_DASH = [3, 3];
const DASHES = { dotted: [2, 3], dashed: [7, 4] };
const LEAST_SPAN_SECONDS = 60;
const DAY_SECONDS = 86_400;
// The possible distances between two ticks of the time axis, in seconds.
const STEPS = [5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, DAY_SECONDS, 7 * DAY_SECONDS];

/** Whether uPlot is installed. */
export const installed = UPlot !== undefined;

/** @param {string} name */
function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function axisColors() {
  const line = { stroke: color("line"), width: 1 };
  return { stroke: color("faint"), grid: line, ticks: line, font: FONT };
}

/**
 * Format a time of day.
 * @param {number | null} at in seconds since 1970
 */
function clock(at) {
  if (at === null) return "–";
  return new Date(1000 * at).toLocaleTimeString("en-GB");
}

/** A plot of some columns of a series, with vertical marks. */
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
   * Draw the part of the series that begins at a time.
   * @param {import("./series.js").Series} series
   * @param {number} since
   * @param {Mark[]} marks
   */
  draw(series, since, marks) {
    const first = Math.max(0, series.time.findIndex((time) => time >= since));
    const columns = this.plot.lines.map((line) => series.column(line.name).slice(first));
    this.marks = marks;
    this.drawn.setData([series.time.slice(first), ...columns]);
    // While the pointer is elsewhere, the legend shows the newest values.
    if (this.drawn.cursor.idx === null) this.drawn.setLegend({ idx: columns[0].length - 1 });
  }

  /** Remove the plot. */
  close() {
    this.resizing.disconnect();
    this.drawn.destroy();
    this.figure.remove();
  }

  #width() {
    return Math.max(this.figure.clientWidth, 200);
  }

  /** Return the style of a series' line in the legend. */
  #dash = (/** @type {unknown} */ _, /** @type {number} */ i) => this.plot.lines[i - 1].dash ?? "solid";

  #options() {
    const { lines, show, mark = show } = this.plot;
    const axis = axisColors();
    /** @param {unknown} _ @param {number[]} values */
    const labels = (_, values) => values.map((value) => mark(value));
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
      legend: { live: true, markers: { dash: this.#dash } },
      cursor: { drag: { x: false, y: false } },
      scales: { x: { range: span } },
      axes: [times, { ...axis, size: AXIS_WIDTH, values: labels }],
      series: [
        { label: "Time", value: (/** @type {unknown} */ _, /** @type {number | null} */ at) => clock(at) },
        ...lines.map((line) => ({
          label: line.label,
          stroke: color(line.color),
          width: line.dash ? 1.5 : 2,
          dash: line.dash && DASHES[line.dash],
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

/** A plot of observed shares against claimed ones, with the diagonal on which they agree. */
export class Curve {
  /**
   * @param {HTMLElement} place
   * @param {string} claimed the label of the horizontal axis
   * @param {string} observed the label of the vertical axis
   */
  constructor(place, claimed, observed) {
    const axis = {
      ...axisColors(),
      values: (/** @type {unknown} */ _, /** @type {number[]} */ at) => at.map(roundPercent),
      labelSize: LABEL_HEIGHT,
      labelFont: FONT,
    };
    const scale = { time: false, range: [0, 1] };
    this.place = place;
    this.drawn = new UPlot(
      {
        width: this.#width(),
        height: CURVE_HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        scales: { x: scale, y: scale },
        axes: [
          { ...axis, label: claimed },
          { ...axis, label: observed, size: AXIS_WIDTH - LABEL_HEIGHT },
        ],
        series: [
          {},
          { stroke: color("rule-1"), width: 1, dash: [5, 4], points: { show: false } },
          { stroke: color("series-1"), width: 2, points: { show: true, size: 8 } },
        ],
      },
      [[], [], []],
      place,
    );
    this.resizing = new ResizeObserver(() => {
      this.drawn.setSize({ width: this.#width(), height: CURVE_HEIGHT });
    });
    this.resizing.observe(place);
  }

  /**
   * Draw points [claimed, observed], which are sorted by their claimed share.
   * @param {[number, number][]} points
   */
  draw(points) {
    const inner = points.filter(([claimed]) => claimed > 0 && claimed < 1);
    const claimed = [0, ...inner.map((point) => point[0]), 1];
    this.drawn.setData([claimed, claimed, [null, ...inner.map((point) => point[1]), null]]);
  }

  /** Remove the plot. */
  close() {
    this.resizing.disconnect();
    this.drawn.destroy();
  }

  #width() {
    return Math.max(this.place.clientWidth, 200);
  }
}
