// Reads a CSV file in parts, each small enough for one request.

/** @typedef {{lines: string[], first: number, bytes: number}} Part */

const MOST_LINES = 1000;
const MOST_CHARACTERS = 1 << 20;
// The command's bound on a row of a file. Without one, a text that is no CSV would stop the page.
const LONGEST_ROW = 1 << 23;

/**
 * Yield parts of a file, each with whole records and the number of its first line.
 * A record with line breaks in its fields is not cut.
 * @param {Blob} file
 * @returns {AsyncGenerator<Part>}
 */
export async function* partsOf(file) {
  /** @type {string[]} */
  let records = [];
  /** @type {string[]} */
  let open = [];
  let [characters, first, line, length, quoted] = [0, 1, 1, 0, false];
  for await (const text of linesOf(file)) {
    open.push(text);
    length += text.length + 1;
    if (length > LONGEST_ROW) throw tooLong();
    line += 1;
    if (count(text, '"') % 2 === 1) quoted = !quoted;
    if (quoted) continue;
    const record = open.join("\n");
    [open, length] = [[], 0];
    records.push(record);
    characters += record.length;
    if (records.length >= MOST_LINES || characters >= MOST_CHARACTERS) {
      yield { lines: records, first, bytes: characters + records.length };
      [records, characters, first] = [[], 0, line];
    }
  }
  if (open.length) records.push(open.join("\n"));
  if (records.length) yield { lines: records, first, bytes: characters + records.length };
}

/**
 * Return whether the first line looks like column names: it has no numbers, but the second line does.
 * @param {string} first
 * @param {string} second
 */
export function looksLikeHeader(first, second) {
  const delimiter = delimiterOf(first);
  const fields = first.split(delimiter);
  if (fields.some((field) => field.trim().replaceAll('"', "") === "y")) return true;
  const numbers = (/** @type {string} */ text) =>
    text.split(delimiter).filter((field) => field.trim() !== "" && Number.isFinite(Number(field))).length;
  return numbers(first) === 0 && numbers(second) > 0;
}

// The headings that are most probably that of the label.
const LABELS = ["y", "label", "target", "class"];

/**
 * Return the place of the column that is most probably the label, if exactly one is; else -1.
 * @param {string[]} names
 */
export function labelOf(names) {
  const places = [...names.keys()].filter((i) => LABELS.includes(names[i].toLowerCase()));
  return places.length === 1 ? places[0] : -1;
}

/**
 * Return the fields of a record, without their quotes.
 * @param {string} record
 */
export function fieldsOf(record) {
  const delimiter = delimiterOf(record);
  const fields = [""];
  let quoted = false;
  for (const sign of record) {
    if (sign === '"') quoted = !quoted;
    else if (sign === delimiter && !quoted) fields.push("");
    else fields[fields.length - 1] += sign;
  }
  return fields.map((field) => field.trim());
}

/** @param {string} record */
function delimiterOf(record) {
  return [";", "\t", ","].find((sign) => record.includes(sign)) ?? ",";
}

/**
 * Return the first lines of a file.
 * @param {Blob} file
 */
export async function firstLines(file) {
  const text = await file.slice(0, 1 << 16).text();
  return text.replaceAll("\r\n", "\n").split("\n");
}

/** @param {Blob} file */
async function* linesOf(file) {
  const reader = file.stream().getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
    const lines = rest.split("\n");
    if (lines[lines.length - 1].length > LONGEST_ROW) throw tooLong();
    rest = done ? "" : (lines.pop() ?? "");
    for (const line of lines) {
      if (!done || line !== "") yield line.endsWith("\r") ? line.slice(0, -1) : line;
    }
    if (done) return;
  }
}

function tooLong() {
  const most = LONGEST_ROW.toLocaleString("en");
  return new Error(`A row of the file has more than ${most} characters: is it a CSV file?`);
}

/**
 * @param {string} text
 * @param {string} sign
 */
function count(text, sign) {
  return text.split(sign).length - 1;
}
