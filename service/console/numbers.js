// Functions that format numbers.

/** @type {[string, number][]} */
const UNITS = [
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
];
const whole = new Intl.NumberFormat("en");

/**
 * Format a number with about four digits; anything else becomes a dash.
 * @param {unknown} value
 */
export function shown(value) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value)) return whole.format(value);
  const size = Math.abs(value);
  if (size >= 1000) return whole.format(Math.round(value));
  return size >= 1e-3 || size === 0 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
}

/**
 * Format a share as a percentage.
 * @param {unknown} value
 */
export function percent(value) {
  return typeof value === "number" ? `${(100 * value).toFixed(2)}%` : "–";
}

/**
 * Format a share as a percentage without trailing zeros, for an axis.
 * @param {number} value
 */
export function roundPercent(value) {
  return `${Number((100 * value).toFixed(2))}%`;
}

/**
 * Format a score: accuracies as percentages, errors in units of the target.
 * @param {string} kind
 * @param {unknown} value
 */
export function score(kind, value) {
  return kind === "accuracy" ? percent(value) : shown(value);
}

/**
 * Format a rate.
 * @param {unknown} perSecond
 */
export function rate(perSecond) {
  return typeof perSecond === "number" ? `${shown(Number(perSecond.toPrecision(3)))}/s` : "–";
}

/**
 * Format a duration.
 * @param {unknown} seconds
 */
export function duration(seconds) {
  if (typeof seconds !== "number") return "–";
  return seconds < 1 ? `${shown(1000 * seconds)} ms` : `${shown(seconds)} s`;
}

/**
 * Format an age in its largest unit.
 * @param {number} seconds
 */
export function age(seconds) {
  const [unit, length] = UNITS.find(([, length]) => seconds >= length) ?? ["s", 1];
  return `${Math.floor(seconds / length)} ${unit}`;
}

/**
 * Format a size in bytes.
 * @param {unknown} bytes
 */
export function size(bytes) {
  if (typeof bytes !== "number") return "–";
  const units = ["B", "kB", "MB", "GB"];
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  return `${shown(bytes / 1000 ** power)} ${units[power]}`;
}
