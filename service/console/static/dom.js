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
  return element("tr", {}, ...cells.map((cell) => element("td", {}, cell)));
}

/**
 * A row of a table's head.
 * @param {string[]} names
 */
export function headRow(names) {
  return element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)));
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
