// Plots over time, drawn by uPlot, which plots.js puts into the window if it is installed.

import { element } from "./dom.js";
import { roundPercent } from "./numbers.js";

/** @typedef {{name: string, label: string, color: string, dashed?: boolean}} Line */
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

function axisColors() {
  const line = { stroke: color("line"), width: 1 };
  return { stroke: color("faint"), grid: line, ticks: line, font: FONT };
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
    // While nothing is pointed at, the legend has the newest values.
    if (this.drawn.cursor.idx === null) this.drawn.setLegend({ idx: columns[0].length - 1 });
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

/** Shares that came beside shares that were said, with the diagonal on which both are the same. */
export class Curve {
  /**
   * @param {HTMLElement} place
   * @param {string} said
   * @param {string} came
   */
  constructor(place, said, came) {
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
          { ...axis, label: said },
          { ...axis, label: came, size: AXIS_WIDTH - LABEL_HEIGHT },
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
   * Draw points in the order of what was said.
   * @param {[number, number][]} points
   */
  draw(points) {
    const inner = points.filter(([said]) => said > 0 && said < 1);
    const said = [0, ...inner.map((point) => point[0]), 1];
    this.drawn.setData([said, said, [null, ...inner.map((point) => point[1]), null]]);
  }

  /** Take the plot away. */
  close() {
    this.resizing.disconnect();
    this.drawn.destroy();
  }

  #width() {
    return Math.max(this.place.clientWidth, 200);
  }
}
