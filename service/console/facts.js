// The most important facts about a model, at the top of its page.

import { badge, byId, element, fill } from "./dom.js";
import { duration, rate, score, shown } from "./numbers.js";

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
  const about = `${state.task}, answered by ${state.serve.replace("_", " ")}`;
  fill(byId("status", HTMLElement), [badge(state.status, state.status), document.createTextNode(` ${about}`)]);
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
    { name: "Samples", value: shown(state.sequence), beside: `${rate(values.samples_per_second)} learned` },
    { name: "Learn latency", value: duration(values.learn_seconds), beside: `${shown(state.queue_samples)} samples queued` },
    {
      name: "Predict latency",
      value: duration(values.predict_seconds),
      beside: `${rate(values.rows_per_second)} predicted`,
    },
  ];
  // Sets of heads that do not answer are among the heads, below.
  const set = /** @type {any} */ (state.heads[serve]);
  if (set && "size" in set) facts.push({ name: "Working set", value: shown(set.size), beside: `gap ${shown(set.gap)}` });
  if (pending?.rows || pending?.joined || pending?.expired) {
    facts.push({ name: "Late labels", value: `${shown(pending.rows)} waiting`, beside: `${shown(pending.joined)} labelled` });
  }
  if (follows) facts.push({ name: "Follows", value: follows.model, beside: `${shown(follows.lag)} behind` });
  return facts;
}
