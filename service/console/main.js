// The console: the list of models, or the model named in the address after #/.

import { byId } from "./dom.js";
import { ModelView } from "./model.js";
import { ModelList } from "./models.js";

const connection = byId("connection", HTMLElement);
const problem = byId("problem", HTMLElement);

/** @type {import("./model.js").Report} */
const report = {
  connection(text, lost = false) {
    if (connection.textContent !== text) connection.textContent = text;
    connection.classList.toggle("lost", lost);
  },
  fail(error) {
    problem.textContent = error instanceof Error ? error.message : String(error);
    problem.hidden = false;
  },
};

const models = new ModelList(report);
const model = new ModelView(report);

/**
 * Return the name of the model in an address; "" without one.
 * @param {string} place
 */
function nameIn(place) {
  try {
    return decodeURIComponent(place.slice(2));
  } catch {
    report.fail(new Error("The address names no model: its name is not encoded as addresses are."));
    return "";
  }
}

/** Show the page that the address names. */
function route() {
  const place = location.hash;
  if (place && !place.startsWith("#/")) return; // an anchor within the page
  problem.hidden = true;
  const name = nameIn(place);
  document.title = name ? `${name} · wolfstream` : "wolfstream";
  models.show(name === "");
  if (name) {
    void model.open(name);
  } else {
    model.close();
  }
}

// A new attempt makes the last error obsolete.
document.addEventListener("submit", () => (problem.hidden = true), { capture: true });
addEventListener("hashchange", route);
route();
