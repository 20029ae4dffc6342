// What is to be known of a model at first sight.

import { byId, element, fill } from "./dom.js";
import { duration, score, shown } from "./numbers.js";

/** @typedef {{name: string, value: string, beside?: string, kind?: string}} Fact */

/**
 * Show the facts of a state.
 * @param {any} state
 */
export function showFacts(state) {
  const made = factsOf(state).map(({ name, value, beside, kind }) => {
    const parts = [element("dt", {}, name), element("dd", {}, value)];
    if (beside) parts.push(element("dd", { class: "small" }, beside));
    return element("div", kind ? { class: kind } : {}, ...parts);
  });
  fill(byId("facts", HTMLElement), made);
}

/**
 * @param {any} state
 * @returns {Fact[]}
 */
function factsOf(state) {
  const { values, drawn, serve, pending, follows } = state;
  const recent = values[`${serve}.${drawn}`];
  const simple = drawn === "accuracy" ? "majority" : "running_mean";
  const facts = [
    {
      name: drawn === "accuracy" ? "Accuracy" : "Mean error",
      value: score(drawn, recent),
      beside: `${simple.replace("_", " ")} ${score(drawn, values[`${simple}.${drawn}`])}`,
      kind: "first",
    },
    { name: "Samples", value: shown(state.sequence), beside: `${shown(values.samples_per_second)} a second` },
    { name: "To learn", value: duration(values.learn_seconds), beside: `${shown(state.queue_samples)} wait` },
    {
      name: "To predict",
      value: duration(values.predict_seconds),
      beside: `${shown(values.rows_per_second)} rows a second`,
    },
    { name: "Status", value: state.status, kind: state.status },
  ];
  const set = /** @type {any} */ (
    Object.values(state.heads).find((/** @type {any} */ head) => "size" in head)
  );
  if (set) facts.push({ name: "Samples kept", value: shown(set.size), beside: `gap ${shown(set.gap)}` });
  if (pending?.rows || pending?.joined || pending?.expired) {
    facts.push({ name: "Labels to come", value: shown(pending.rows), beside: `${shown(pending.joined)} came` });
  }
  if (follows) facts.push({ name: "Follows", value: follows.model, beside: `${shown(follows.lag)} behind` });
  return facts;
}
