// The tables of the last predictions: those labelled at once, and those whose labels arrive later.

import { badge, byId, element, fill, row } from "./dom.js";
import { age, shown } from "./numbers.js";

/**
 * Show the last predictions of a state.
 * @param {any} state
 */
export function showLatest(state) {
  const rows = [...state.latest].reverse().map((/** @type {any} */ one) =>
    row(text(one.prediction), text(one.label), judgement(state.task, one)),
  );
  fill(byId("latest-rows", HTMLElement), rows);
  const { pending } = state;
  const foretold = [...state.foretold].reverse();
  byId("foretold", HTMLElement).hidden = !foretold.length;
  if (!foretold.length) return;
  byId("pending-counts", HTMLElement).textContent =
    `${shown(pending.rows)} waiting, ${shown(pending.joined)} labelled, ${shown(pending.expired)} expired.`;
  const now = Date.parse(state.time);
  fill(
    byId("foretold-rows", HTMLElement),
    foretold.map((one) => foretoldRow(state.task, one, now)),
  );
}

/**
 * @param {string} task
 * @param {any} one
 * @param {number} now in milliseconds since 1970
 */
function foretoldRow(task, one, now) {
  const id = element("code", {}, String(one.id));
  if (one.status === "joined") return row(id, text(one.prediction), text(one.label), judgement(task, one));
  if (one.status === "expired") return row(id, text(one.prediction), "–", badge("wrong", "expired"));
  const seconds = Math.max(0, (now - Date.parse(one.since)) / 1000);
  return row(id, text(one.prediction), "–", badge("waiting", `waiting for ${age(seconds)}`));
}

/** @param {unknown} value */
function text(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "number" ? shown(value) : String(value);
}

/**
 * @param {string} task
 * @param {any} one
 */
function judgement(task, one) {
  if (task === "regression") return `off by ${shown(Math.abs(one.prediction - one.label))}`;
  return one.prediction === one.label ? badge("right", "✓ right") : badge("wrong", "✗ wrong");
}
