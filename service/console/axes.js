// Axes with round numbers, and the frame of a plot in SVG.

import { shape } from "./dom.js";

/** @typedef {{low: number, high: number, ticks: number[], text: (value: number) => string}} Axis */
/** @typedef {(value: number) => number} Scale maps values of an axis to pixels */

const LEFT = 68;
const RIGHT = 18;
const TOP = 10;
const BOTTOM = 28;
const LEAST_WIDTH = 200;
const DAY_SECONDS = 86_400;
// The possible distances between two ticks of a time axis, in seconds.
const STEPS = [5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, DAY_SECONDS, 7 * DAY_SECONDS];
// The share of a step by which rounding may make numbers miss a multiple of it.
const ROUNDING = 1e-9;

/**
 * Return an axis that contains both numbers and has about `count` ticks.
 *
 * It begins and ends with a tick. The distance of two ticks is 1, 2 or 5 times a power of ten.
 * @param {number} low
 * @param {number} high
 * @param {number} count
 * @param {(value: number) => string} text
 * @returns {Axis}
 */
export function numberAxis(low, high, count, text) {
  const [least, most] = low < high ? [low, high] : [Math.min(low, 0), Math.max(low, 0)];
  const distance = (most - least || 1) / count;
  const power = 10 ** Math.floor(Math.log10(distance));
  const step = power * ([1, 2, 5].find((n) => n * power * (1 + ROUNDING) >= distance) ?? 10);
  const first = Math.floor(least / step + ROUNDING);
  const last = Math.max(Math.ceil(most / step - ROUNDING), first + 1);
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  return { low: first * step, high: last * step, ticks, text };
}

/**
 * Return an axis from one time to another, in seconds since 1970, with at most about `count` ticks.
 *
 * Ticks are at round times of the reader's day.
 * @param {number} low
 * @param {number} high
 * @param {number} count
 * @param {(value: number) => string} text
 * @returns {Axis}
 */
export function timeAxis(low, high, count, text) {
  const step = STEPS.find((seconds) => seconds * count >= high - low) ?? STEPS[STEPS.length - 1];
  const midnight = 60 * new Date(1000 * low).getTimezoneOffset();
  const ticks = [];
  for (let at = Math.ceil((low - midnight) / step) * step + midnight; at <= high; at += step) ticks.push(at);
  return { low, high, ticks, text };
}

/** An SVG element with two axes, as wide as its place. */
export class Frame {
  /**
   * @param {HTMLElement} place
   * @param {string} label what a screen reader says
   * @param {number} height
   * @param {() => void} redraw called when the width has changed
   */
  constructor(place, label, height, redraw) {
    this.place = place;
    this.height = height;
    this.svg = shape("svg", { class: "plot", role: "img", "aria-label": label, height });
    place.append(this.svg);
    this.resizing = new ResizeObserver(redraw);
    this.resizing.observe(place);
  }

  /** The width of the area between the axes. */
  get width() {
    return Math.max(this.place.clientWidth, LEAST_WIDTH) - LEFT - RIGHT;
  }

  /** @param {Axis} axis @returns {Scale} */
  across(axis) {
    const { width } = this; // asked for once: it makes the browser lay out the page
    return (value) => LEFT + (width * (value - axis.low)) / (axis.high - axis.low);
  }

  /** @param {Axis} axis @returns {Scale} */
  up(axis) {
    const bottom = this.height - BOTTOM;
    return (value) => bottom - ((bottom - TOP) * (value - axis.low)) / (axis.high - axis.low);
  }

  /**
   * Create a vertical line.
   * @param {number} x
   * @param {string} kind its class
   */
  upright(x, kind) {
    return shape("line", { class: kind, x1: x, x2: x, y1: TOP, y2: this.height - BOTTOM });
  }

  /**
   * Draw a grid with the texts of both axes, and before it what the plot shows.
   * @param {Axis} x
   * @param {Axis} y
   * @param {...SVGElement} content
   */
  draw(x, y, ...content) {
    const [across, up] = [this.across(x), this.up(y)];
    const grid = shape("g", { class: "grid" }, ...x.ticks.map((at) => this.upright(across(at), "tick")));
    const [left, right] = [LEFT, LEFT + this.width];
    for (const at of x.ticks) {
      grid.append(shape("text", { class: "across", x: across(at), y: this.height - 8 }, x.text(at)));
    }
    for (const at of y.ticks) {
      grid.append(shape("line", { class: "tick", x1: left, x2: right, y1: up(at), y2: up(at) }));
      grid.append(shape("text", { class: "up", x: left - 8, y: up(at) + 4 }, y.text(at)));
    }
    this.svg.replaceChildren(grid, ...content);
  }

  /** Remove it. */
  close() {
    this.resizing.disconnect();
    this.svg.remove();
  }
}
