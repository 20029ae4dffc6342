// The console: the list of models, or the one that the address names after its #/.

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

/** Show what the address names. */
function route() {
  const place = location.hash;
  if (place && !place.startsWith("#/")) return; // a place within the page
  const name = decodeURIComponent(place.slice(2));
  problem.hidden = true;
  document.title = name ? `${name} · wolfstream` : "wolfstream";
  models.show(name === "");
  if (name) {
    void model.open(name);
  } else {
    model.close();
  }
}

// What was wrong before is settled once something is tried anew.
document.addEventListener("submit", () => (problem.hidden = true), { capture: true });
addEventListener("hashchange", route);
route();
