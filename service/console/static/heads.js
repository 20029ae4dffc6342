// The tables of a model's heads, and of what each learner of the bank is worth.

import { Problem, call, modelPath } from "./api.js";
import { byId, element, fill, headRow, row } from "./dom.js";
import { score, shown, size } from "./numbers.js";

const REFRESH_MS = 5000;
// What of a learner is told beside its name.
const NOT_PARAMETERS = new Set(["learner", "weight", "recent_loss", "overall_loss", "external"]);

export class Heads {
  /** @param {(error: unknown) => void} fail */
  constructor(fail) {
    this.fail = fail;
    this.name = "";
    this.details = byId("learners", HTMLDetailsElement);
    this.details.addEventListener("toggle", () => void this.#refresh());
    setInterval(() => void this.#refresh(), REFRESH_MS);
  }

  /** @param {string} name */
  reset(name) {
    this.name = name;
    this.details.hidden = true;
    byId("learner-rows", HTMLElement).replaceChildren();
  }

  /** @param {any} state */
  show(state) {
    const { drawn, serve } = state;
    const named = drawn === "accuracy" ? ["Accuracy", "Log loss"] : ["Mean error", "Root mean square"];
    const other = drawn === "accuracy" ? "log_loss" : "rmse";
    const columns = ["Head", `${named[0]}, last 1,000`, "of all", `${named[1]}, last 1,000`];
    fill(byId("head-columns", HTMLElement), [
      headRow([...columns, "Samples kept", "Duality gap", "Memory", "Changes found"]),
    ]);
    const rows = Object.entries(state.heads).map(([head, stats]) => {
      const scores = /** @type {any} */ (stats).prequential;
      const served = head === serve ? " (answers)" : "";
      return row(
        `${head.replace("_", " ")}${served}`,
        score(drawn, scores[`recent_${drawn}`]),
        score(drawn, scores[drawn]),
        shown(scores[`recent_${other}`]),
        shown(/** @type {any} */ (stats).size),
        shown(/** @type {any} */ (stats).gap),
        size(/** @type {any} */ (stats).bytes),
        shown((/** @type {any} */ (stats).changes ?? []).length),
      );
    });
    fill(byId("head-rows", HTMLElement), rows);
    this.details.hidden = !state.heads.adaptive;
  }

  /** Ask for the learners while they are seen. */
  async #refresh() {
    const { name } = this;
    if (!name || this.details.hidden || !this.details.open || document.hidden) return;
    try {
      const answer = await call("GET", modelPath(name, "/learners"));
      if (name !== this.name) return;
      const learners = /** @type {any[]} */ (Object.values(answer.heads).flat());
      learners.sort((a, b) => b.weight - a.weight);
      fill(byId("learner-rows", HTMLElement), learners.map(learnerRow));
    } catch (error) {
      if (error instanceof Problem) this.fail(error);
    }
  }
}

/** @param {any} learner */
function learnerRow(learner) {
  const parameters = Object.entries(learner)
    .filter(([name, value]) => !NOT_PARAMETERS.has(name) && value !== null)
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? shown(value) : value}`);
  const kind = learner.external ? `head ${learner.learner}` : learner.learner;
  const weight = element("span", {});
  const meter = element("meter", { value: String(learner.weight), "aria-hidden": "true" });
  weight.append(meter, ` ${learner.weight.toFixed(3)}`);
  return row(
    [String(kind).replace("_", " "), ...parameters].join(", "),
    weight,
    shown(learner.recent_loss),
    shown(learner.overall_loss),
  );
}
