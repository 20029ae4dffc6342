// Small ways to the document. Text always goes in as text, never as markup.

/**
 * The element of this id, which index.html has.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function byId(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`index.html has no ${kind.name} #${id}`);
  return found;
}

/**
 * A new element with text or other elements in it.
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {...(string | Node)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * A row of a table.
 * @param {...(string | Node)} cells
 */
export function row(...cells) {
  const isCell = (/** @type {string | Node} */ cell) => cell instanceof HTMLTableCellElement;
  return element("tr", {}, ...cells.map((cell) => (isCell(cell) ? cell : element("td", {}, cell))));
}

/**
 * A cell of a number, which stands at the right.
 * @param {...(string | Node)} content
 */
export function number(...content) {
  return element("td", { class: "number" }, ...content);
}

/**
 * A row of a table's head. All columns but the first hold numbers.
 * @param {string[]} names
 */
export function headRow(names) {
  const cells = names.map((name, i) =>
    element("th", { scope: "col", ...(i ? { class: "number" } : {}) }, name),
  );
  return element("tr", {}, ...cells);
}

/**
 * A share as a bar, with a text that says it.
 * @param {number} share
 * @param {string} text
 */
export function bar(share, text) {
  const meter = element("meter", { value: String(share), "aria-hidden": "true" });
  return element("span", { class: "bar" }, meter, text);
}

/**
 * A word with a sign of its own, in a colour that says the same.
 * @param {string} kind one of right, wrong, waiting, broken, ok
 * @param {string} text
 */
export function badge(kind, text) {
  return element("span", { class: `badge ${kind}` }, text);
}

/**
 * Whether a dialog, which is shown, is closed with yes.
 * @param {HTMLDialogElement} dialog
 * @returns {Promise<boolean>}
 */
export function confirmed(dialog) {
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    const answer = () => resolve(dialog.returnValue === "yes");
    dialog.addEventListener("close", answer, { once: true });
  });
}

/**
 * Replace what is in an element, unless it would look the same: what is focused or selected stays.
 * @param {HTMLElement} place
 * @param {Node[]} children
 */
export function fill(place, children) {
  const made = document.createElement(place.tagName);
  made.append(...children);
  if (made.innerHTML !== place.innerHTML) place.replaceChildren(...made.childNodes);
}
