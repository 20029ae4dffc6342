// Functions that find and create elements. Text is always inserted as text, never as markup.

/**
 * Return the element of index.html with this id.
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
 * Create an element that contains text and other elements.
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
 * Create an element of SVG that contains text and other elements.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(string | Node)} children
 * @returns {SVGElement}
 */
export function shape(tag, attributes, ...children) {
  const made = /** @type {SVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", tag));
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/**
 * Create a table row.
 * @param {...(string | Node)} cells
 */
export function row(...cells) {
  const isCell = (/** @type {string | Node} */ cell) => cell instanceof HTMLTableCellElement;
  return element("tr", {}, ...cells.map((cell) => (isCell(cell) ? cell : element("td", {}, cell))));
}

/**
 * Create a cell for a number, which is aligned to the right.
 * @param {...(string | Node)} content
 */
export function number(...content) {
  return element("td", { class: "number" }, ...content);
}

/**
 * Create a row of column titles. All columns except the first one hold numbers.
 * @param {string[]} names
 */
export function headRow(names) {
  const cells = names.map((name, i) =>
    element("th", { scope: "col", ...(i ? { class: "number" } : {}) }, name),
  );
  return element("tr", {}, ...cells);
}

/**
 * Create a bar for a share, with a text beside it.
 * @param {number} share
 * @param {string} text
 */
export function bar(share, text) {
  const meter = element("meter", { value: String(share), "aria-hidden": "true" });
  return element("span", { class: "bar" }, meter, text);
}

/**
 * Create a coloured badge. Its text alone must be enough to understand it.
 * @param {string} kind one of right, wrong, waiting, broken, ok
 * @param {string} text
 */
export function badge(kind, text) {
  return element("span", { class: `badge ${kind}` }, text);
}

/**
 * Show a dialog and return whether the user confirmed it.
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
 * Replace an element's children, unless nothing would change, to preserve focus and selection.
 * @param {HTMLElement} place
 * @param {Node[]} children
 */
export function fill(place, children) {
  const made = document.createElement(place.tagName);
  made.append(...children);
  if (made.innerHTML !== place.innerHTML) place.replaceChildren(...made.childNodes);
}
