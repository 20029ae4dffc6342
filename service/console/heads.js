// The table of a model's heads: the scores and the memory of each.

import { byId, fill, headRow, number, row } from "./dom.js";
import { score, shown, size } from "./numbers.js";

/**
 * Show the heads of a state.
 * @param {any} state
 */
export function showHeads(state) {
  const { drawn, serve } = state;
  const classes = drawn === "accuracy";
  const named = classes ? ["Accuracy", "Log loss"] : ["Mean error", "Root mean square"];
  const other = classes ? "log_loss" : "rmse";
  const columns = ["Head", `${named[0]}, last 1,000`, "Overall", `${named[1]}, last 1,000`];
  fill(byId("head-columns", HTMLElement), [
    headRow([...columns, "Set size", "Duality gap", "Memory", "Changes"]),
  ]);
  const rows = Object.entries(state.heads).map(([head, stats]) => {
    const { prequential: scores, size: kept, gap, bytes, changes } = /** @type {any} */ (stats);
    const numbers = [
      score(drawn, scores[`recent_${drawn}`]),
      score(drawn, scores[drawn]),
      shown(scores[`recent_${other}`]),
      shown(kept),
      shown(gap),
      size(bytes),
      shown((changes ?? []).length),
    ];
    const served = head === serve ? " (answers)" : "";
    return row(`${head.replace("_", " ")}${served}`, ...numbers.map((text) => number(text)));
  });
  fill(byId("head-rows", HTMLElement), rows);
}
