// Plots: lines over time, and the curve of a calibration.

import { Frame, numberAxis, timeAxis } from "./axes.js";
import { element, shape } from "./dom.js";
import { roundPercent } from "./numbers.js";

/** @typedef {{name: string, label: string, color: string, dash?: "dotted" | "dashed"}} Line */
/** @typedef {{title: string, lines: Line[], wide?: boolean, show: (value: number) => string,
 *   mark?: (value: number) => string}} Plot */
/** @typedef {{time: number, label: string}} Mark */
/** @typedef {import("./axes.js").Scale} Scale */
/** @typedef {import("./series.js").Column} Column */

const HEIGHT = 220;
const CURVE_HEIGHT = 280;
// About so many pixels are between two ticks.
const TIME_SPACE = 95;
const SPACE = 55;
const LEAST_SPAN_SECONDS = 60;

/** A plot of some columns of a series, with vertical marks. */
export class Chart {
  /**
   * @param {HTMLElement} place
   * @param {Plot} plot
   */
  constructor(place, plot) {
    this.plot = plot;
    /** @type {number[]} */
    this.time = [];
    /** A column for each line. @type {Column[]} */
    this.columns = plot.lines.map(() => []);
    /** @type {Mark[]} */
    this.marks = [];
    /** Where the pointer is, in pixels from the left; undefined while it is elsewhere. @type {number | undefined} */
    this.pointer = undefined;
    this.cursor = shape("g", {});
    /** Those of the last drawing. @type {{across: Scale, up: Scale}} */
    this.scales = { across: Number, up: Number };
    this.figure = element("figure", plot.wide ? { class: "wide" } : {});
    this.figure.append(element("figcaption", {}, plot.title));
    this.frame = new Frame(this.figure, plot.title, HEIGHT, () => this.#redraw());
    this.values = [{ label: "Time" }, ...plot.lines].map(() => element("b", {}));
    this.figure.append(legend(plot.lines, this.values));
    const { svg } = this.frame;
    svg.addEventListener("pointermove", ({ clientX }) => this.#look(clientX - svg.getBoundingClientRect().left));
    svg.addEventListener("pointerleave", () => this.#look(undefined));
    place.append(this.figure);
  }

  /**
   * Draw the part of the series that begins at a time.
   * @param {import("./series.js").Series} series
   * @param {number} since
   * @param {Mark[]} marks
   */
  draw(series, since, marks) {
    const first = Math.max(0, series.time.findIndex((time) => time >= since));
    this.time = series.time.slice(first);
    this.columns = this.plot.lines.map((line) => series.column(line.name).slice(first));
    this.marks = marks;
    this.#redraw();
  }

  /** Remove the plot. */
  close() {
    this.frame.close();
    this.figure.remove();
  }

  #redraw() {
    const { x, y } = this.#axes();
    const { across, up } = (this.scales = { across: this.frame.across(x), up: this.frame.up(y) });
    const lines = this.plot.lines.map(({ color, dash }, i) => {
      const d = pathOf(this.time, this.columns[i], across, up);
      return shape("path", { class: `line ${color} ${dash ?? ""}`, d });
    });
    const marks = this.marks
      .filter((mark) => mark.time >= x.low && mark.time <= x.high)
      .map((mark) => this.frame.upright(across(mark.time), "mark"));
    this.frame.draw(x, y, ...lines, ...marks, this.cursor);
    this.#look(this.pointer);
  }

  #axes() {
    const { show, mark = show } = this.plot;
    const end = this.time.at(-1) ?? Date.now() / 1000;
    const begin = Math.min(this.time[0] ?? end, end - LEAST_SPAN_SECONDS);
    let [low, high] = [Infinity, -Infinity];
    for (const column of this.columns) {
      for (const value of column) {
        if (value === null) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    if (low > high) [low, high] = [0, 1];
    return {
      x: timeAxis(begin, end, this.frame.width / TIME_SPACE, clock),
      y: numberAxis(low, high, HEIGHT / SPACE, mark),
    };
  }

  /**
   * Show the values under the pointer; the newest ones while it is elsewhere.
   * @param {number | undefined} pointer
   */
  #look(pointer) {
    this.pointer = pointer;
    const { across, up } = this.scales;
    const i = pointer === undefined ? this.time.length - 1 : nearest(this.time.map(across), pointer);
    const values = this.columns.map((column) => column[i] ?? null);
    const { show } = this.plot;
    const texts = [clock(this.time[i] ?? null), ...values.map((value) => (value === null ? "–" : show(value)))];
    this.values.forEach((place, k) => (place.textContent = texts[k]));
    this.cursor.replaceChildren();
    if (pointer === undefined || i < 0) return;
    this.cursor.append(this.frame.upright(across(this.time[i]), "cursor"));
    this.plot.lines.forEach(({ color }, k) => {
      const value = values[k];
      if (value === null) return;
      this.cursor.append(shape("circle", { class: `dot ${color}`, cx: across(this.time[i]), cy: up(value), r: 3.5 }));
    });
  }
}

/**
 * Format a time of day.
 * @param {number | null} at in seconds since 1970
 */
function clock(at) {
  if (at === null) return "–";
  return new Date(1000 * at).toLocaleTimeString("en-GB");
}

/**
 * Create the list of a plot's lines, with a place for the value of each after one for the time.
 * @param {Line[]} lines
 * @param {HTMLElement[]} values
 */
function legend(lines, values) {
  const keys = lines.map(({ color, dash }) =>
    shape("svg", { class: "key", "aria-hidden": "true" },
      shape("line", { class: `line ${color} ${dash ?? ""}`, x2: 20, y1: 4, y2: 4 })));
  const items = lines.map(({ label }, i) => element("li", {}, keys[i], `${label}: `, values[i + 1]));
  return element("ul", { class: "legend" }, element("li", {}, "Time: ", values[0]), ...items);
}

/**
 * Return the path of a line, which goes on across gaps. Of points in the same column of pixels, it
 * keeps the lowest and the highest.
 * @param {number[]} time
 * @param {Column} values
 * @param {Scale} across
 * @param {Scale} up
 */
function pathOf(time, values, across, up) {
  /** Indices of the lowest and the highest point of a column. @type {Map<number, [number, number]>} */
  const columns = new Map();
  const valueAt = (/** @type {number} */ i) => /** @type {number} */ (values[i]);
  values.forEach((value, i) => {
    if (value === null) return;
    const pixel = Math.round(across(time[i]));
    const [low, high] = columns.get(pixel) ?? [i, i];
    columns.set(pixel, [value < valueAt(low) ? i : low, value > valueAt(high) ? i : high]);
  });
  const kept = [...columns.values()].flatMap(([low, high]) =>
    low === high ? [low] : [Math.min(low, high), Math.max(low, high)],
  );
  return through(kept.map((i) => [across(time[i]), up(valueAt(i))]));
}

/**
 * Return the path through points; one point alone is drawn as a dot.
 * @param {[number, number][]} points
 */
function through(points) {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("") + (points.length === 1 ? "h0" : "");
}

/**
 * Return the index of the number nearest to another one; -1 if there is none.
 * @param {number[]} numbers in ascending order
 * @param {number} wanted
 */
function nearest(numbers, wanted) {
  const after = numbers.findIndex((number) => number >= wanted);
  if (after < 0) return numbers.length - 1;
  return after > 0 && wanted - numbers[after - 1] < numbers[after] - wanted ? after - 1 : after;
}

/** A plot of observed shares against claimed ones, with the diagonal on which they agree. */
export class Curve {
  /**
   * @param {HTMLElement} place
   * @param {string} claimed the label of the horizontal axis
   * @param {string} observed the label of the vertical axis
   */
  constructor(place, claimed, observed) {
    /** @type {[number, number][]} */
    this.points = [];
    this.figure = element("figure", { class: "curve" });
    this.figure.append(element("p", { class: "small" }, `${observed} ↑`));
    this.frame = new Frame(this.figure, `${observed} by ${claimed}`, CURVE_HEIGHT, () => this.#redraw());
    this.figure.append(element("p", { class: "small" }, `${claimed} →`));
    place.append(this.figure);
  }

  /**
   * Draw points [claimed, observed], which are sorted by their claimed share.
   * @param {[number, number][]} points
   */
  draw(points) {
    this.points = points;
    this.#redraw();
  }

  #redraw() {
    const axis = numberAxis(0, 1, 5, roundPercent);
    const [across, up] = [this.frame.across(axis), this.frame.up(axis)];
    /** @type {[number, number][]} */
    const places = this.points.map(([claimed, observed]) => [across(claimed), up(observed)]);
    const agree = through([0, 1].map((share) => [across(share), up(share)]));
    const dots = places.map(([cx, cy]) => shape("circle", { class: "dot series-1", cx, cy, r: 4 }));
    const diagonal = shape("path", { class: "line rule-1 dashed", d: agree });
    const line = shape("path", { class: "line series-1", d: through(places) });
    this.frame.draw(axis, axis, diagonal, line, ...dots);
  }

  /** Remove the plot. */
  close() {
    this.frame.close();
    this.figure.remove();
  }
}
