// The numbers of one model over time: first those that the server kept, then those of events.

/** @typedef {(number | null)[]} Column */

// With more points, the older half is thinned out.
const MOST_POINTS = 8000;

export class Series {
  constructor() {
    /** @type {number[]} */
    this.time = [];
    /** @type {Map<string, Column>} */
    this.columns = new Map();
  }

  /**
   * Replace everything with what the server kept.
   * @param {{time: number[], numbers: Record<string, Column>}} history
   */
  load(history) {
    this.time = [...history.time];
    this.columns = new Map(Object.entries(history.numbers).map(([name, c]) => [name, [...c]]));
  }

  /**
   * Add the numbers of one time, in seconds since 1970, unless it is older than the last one.
   * @param {number} time
   * @param {Record<string, number | null>} numbers
   */
  add(time, numbers) {
    const n = this.time.length;
    if (n && time <= this.time[n - 1]) return;
    this.time.push(time);
    for (const name of Object.keys(numbers)) {
      if (!this.columns.has(name)) this.columns.set(name, new Array(n).fill(null));
    }
    for (const [name, column] of this.columns) column.push(numbers[name] ?? null);
    if (this.time.length > MOST_POINTS) this.#thin();
  }

  /**
   * Return a column's values; null where it has none.
   * @param {string} name
   * @returns {Column}
   */
  column(name) {
    return this.columns.get(name) ?? new Array(this.time.length).fill(null);
  }

  /**
   * Return when the model first had a sequence; undefined if that is not known.
   * @param {number} sequence
   */
  timeOf(sequence) {
    const sequences = this.column("sequence");
    const place = sequences.findIndex((value) => value !== null && value >= sequence);
    if (place < 0 || (place === 0 && sequences[0] !== sequence)) return undefined;
    return this.time[place];
  }

  /** Drop every second point of the older half. */
  #thin() {
    const half = this.time.length / 2;
    /** @param {unknown} _ @param {number} i */
    const kept = (_, i) => i >= half || i % 2 === 0;
    this.time = this.time.filter(kept);
    for (const [name, column] of this.columns) this.columns.set(name, column.filter(kept));
  }
}
