"""Facts about a table's columns to show: missing values, ranges, numbers of different values.

Nothing is learned from them. Memory is bounded: different values of the first rows and columns are
counted by the bits of a hash (linear counting, Whang and others 1990).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled, larger, smaller
from wolfstream.solver.prepare.cells import NO_TEXT, Cells, code_of, text_of
from wolfstream.solver.prepare.columns import LARGEST_CODE
from wolfstream.solver.prepare.judging import EMPTY, judge
from wolfstream.solver.prepare.repeats import codes_of_numbers
from wolfstream.solver.prepare.schema import RUN, Column, Columns, Schema, in_order
from wolfstream.solver.prepare.table_rows import TableRows

# Different values are counted in this many bits a column, of so many columns and first rows.
BITS, COUNTED_COLUMNS, COUNTED_ROWS = 4096, 256, 10_000
# An empty range has the largest number as its low end, and the least one as its high end.
_LARGEST = float(np.finfo(np.float64).max)
# From this many rows on, a column in which half of the values repeat others has no identifiers.
_ROWS_OF_IDENTIFIERS = 1000
# With a larger share of bits set, the count is too uncertain.
_MOST_FILLED = 0.95
EXAMPLES, _LONGEST_EXAMPLE, _ROWS_OF_EXAMPLES = 3, 40, 256
MOST_NOTICES = 16
_SHOWN_KINDS = ("number in text", "boolean", "time", "text", "identifier", "empty")
_UNREAD_KINDS = ("number", "number in text", "boolean", "time")


class Notice(NamedTuple):
    """A message about a column for whoever sends rows."""

    slug: str
    column: str | None  # None if it concerns the whole table
    message: str


class FactsView(NamedTuple):
    """Immutable facts about d columns."""

    rows: int  # number of rows
    missing: Float64Array  # (d,) number of missing values
    low: Float64Array  # (d,) least number
    high: Float64Array  # (d,) largest number
    filled: NDArray[np.int64]  # (d,) number of bits set by values
    examples: tuple[tuple[str, ...], ...]  # of each column
    # (d,) the sample from which on values are of another kind, or the first value of a column that
    # came late; 0 without.
    revised: NDArray[np.int64]

    def range(self, j: int) -> tuple[float, float] | None:
        """Return the least and the largest number of column j; None without numbers."""
        low, high = float(self.low[j]), float(self.high[j])
        return (low, high) if low <= high else None

    def kind(self, column: Column, j: int, *, coded: bool) -> tuple[str, str]:
        """Return the kind of a column, and the reason.

        column: of the schema.
        j: its index.
        coded: whether its numbers are learned as codes.
        """
        given, distinct = self.rows - float(self.missing[j]), self.distinct(j)
        if not given:
            return "empty", EMPTY.why
        if self.revised[j]:
            judgement = judge(column.name, self.examples[j])
            return judgement.kind, f"another kind, or new, since sample {self.revised[j]}"
        if distinct == 1 and given > 1 and not column.reading.fixed:
            return "constant", "all values so far are the same"
        if column.reading.kind == "number" and distinct == 2 and self.range(j) == (0.0, 1.0):
            return "boolean", "all values are 0 or 1, or true or false"
        kind, why = column.reading.kind, column.reading.why
        if coded and kind == "number":
            return "code", "numbers that come again and again: learned one by one, too"
        if coded and kind == "number in text":
            why += "; they come again and again: learned one by one, too"
        return kind, why

    def distinct(self, j: int) -> int | None:
        """Return the approximate number of different values of column j; None if not known."""
        return None if j >= COUNTED_COLUMNS else _distinct(int(self.filled[j]))


def _distinct(filled: int) -> int | None:
    """Return the approximate number of different values that set so many bits."""
    if filled > _MOST_FILLED * BITS:
        return None
    return round(-BITS * math.log(1.0 - filled / BITS))


class ColumnFacts:
    """Collects facts about the columns of a table."""

    def __init__(self) -> None:
        self.rows = 0
        self._missing, self._low, self._high = np.zeros(0), np.zeros(0), np.zeros(0)
        self._filled = np.zeros(0, np.int64)
        self._bits = np.zeros((0, BITS), np.bool_)
        self._examples: list[tuple[str, ...]] = []
        # The number of last consecutive values that the kind of a column could not read.
        self._unread_run = np.zeros(0, np.int64)
        # The columns in which that is above 0.
        self._running = set[int]()
        self._revised = np.zeros(0, np.int64)
        # How each column was read when its range began.
        self._read: tuple[Any, ...] = ()
        self._columns = Columns()
        # Indices of columns without values while the table settled, and of identifiers.
        self._late, self._identifiers = list[int](), list[int]()
        # Slugs and columns of the notices so far: each is given once.
        self._notices_given: set[tuple[str, str | None]] = set()

    def take(self, table: TableRows) -> list[Notice]:
        """Include rows; return notices about them. table: the rows by the schema after them."""
        schema, cells, plain, places = table.schema, table.cells, table.read, table.places
        n = len(cells.numbers)
        self._make_room(schema, table.columns)
        numbers = np.ascontiguousarray(in_order(plain.numbers, places, math.nan))
        is_number = ~np.isnan(numbers)
        present = is_number.copy()
        if cells.texts:
            present |= in_order(plain.text, places, NO_TEXT) != NO_TEXT
        for k in schema.columns.unused:
            j = places[k]
            if j is not None:
                present[:, k] = ~np.isnan(cells.numbers[:, j]) | (cells.text[:, j] != NO_TEXT)
        _include(
            numbers, is_number, np.ascontiguousarray(present), self._missing, self._low, self._high
        )
        if self.rows < COUNTED_ROWS:
            self._count(_first(cells, COUNTED_ROWS - self.rows), places)
        if self.rows < _ROWS_OF_EXAMPLES:
            self._add_examples(_first(cells, _ROWS_OF_EXAMPLES - self.rows), places)
        notices = self._notices(table)
        notices += self._revisions(table, present)
        self.rows += n
        return notices[:MOST_NOTICES]

    def _make_room(self, schema: Schema, columns: Sequence[Column]) -> None:
        n_new = len(columns) - len(self._missing)
        if n_new > 0:
            # A new column was missing in all rows before.
            self._missing = np.concatenate([self._missing, np.full(n_new, float(self.rows))])
            self._low = np.concatenate([self._low, np.full(n_new, _LARGEST)])
            self._high = np.concatenate([self._high, np.full(n_new, -_LARGEST)])
            self._filled = np.concatenate([self._filled, np.zeros(n_new, np.int64)])
            counted = min(len(columns), COUNTED_COLUMNS) - len(self._bits)
            self._bits = np.concatenate([self._bits, np.zeros((counted, BITS), np.bool_)])
            self._examples += [()] * n_new
            zeros = np.zeros(n_new, np.int64)
            self._unread_run = np.concatenate([self._unread_run, zeros])
            self._revised = np.concatenate([self._revised, zeros])
        how = self._read
        if n_new > 0 or schema.columns is not self._columns:
            how, self._columns = tuple(c.reading.how for c in columns), schema.columns
            kinds = [column.reading.kind for column in columns]
            self._late = [k for k, kind in enumerate(kinds) if kind == "empty"]
            self._identifiers = [k for k, kind in enumerate(kinds) if kind == "identifier"]
        if how != self._read:
            for k, (now, before) in enumerate(zip(how, self._read, strict=False)):
                if now != before:
                    self._low[k], self._high[k] = _LARGEST, -_LARGEST
            self._read = how

    def _count(self, cells: Cells, places: Sequence[int | None]) -> None:
        """Set the bits of values as they came."""
        codes = codes_of_numbers(cells.numbers)
        if cells.texts:
            text_codes = np.array([*map(code_of, cells.texts), math.nan])
            codes = np.where(cells.text == NO_TEXT, codes, text_codes[cells.text])
        codes = in_order(codes, places, math.nan)[:, : len(self._bits)]
        codes = np.ascontiguousarray(codes)
        _set_bits(codes, ~np.isnan(codes), self._bits, self._filled)

    def _add_examples(self, cells: Cells, places: Sequence[int | None]) -> None:
        for k, j in enumerate(places):
            i = 0
            while j is not None and i < len(cells.numbers) and len(self._examples[k]) < EXAMPLES:
                shown = _shown(cells, i, j)
                i += 1
                if shown is not None and shown not in self._examples[k]:
                    self._examples[k] = (*self._examples[k], shown)

    def _notices(self, table: TableRows) -> list[Notice]:
        """Return notices about new columns and unread values; none while the table settles."""
        schema = table.schema
        if not schema.settled:
            return []
        notices = list[Notice]()
        if ("settled", None) not in self._notices_given:
            self._notices_given.add(("settled", None))
            for column in schema.columns:
                kind, why = column.reading.kind, column.reading.why
                if kind in _SHOWN_KINDS and not column.reading.fixed:
                    is_learned = kind != "identifier"
                    what = f"read as {kind}" if is_learned else "not learned as an identifier"
                    message = f"{_quoted(column)} is {what}: {why}"
                    notices.append(Notice("column-kind", column.name, message))
        for column in table.columns[len(schema.columns) :]:
            if self._is_new("new-column", column.name):
                message = (
                    f"{_quoted(column)} came after the first samples and is learned from here on"
                )
                notices.append(Notice("new-column", column.name, message))
        if table.cells.texts:
            notices += self._unread(table)
        return notices

    def _revisions(self, table: TableRows, present: NDArray[np.bool_]) -> list[Notice]:
        """Record columns that became another kind; return notices about them.

        present: (n, d) which values are given.
        """
        notices, plain = list[Notice](), table.read
        if not table.schema.settled:
            return notices
        for k in self._watched(table):
            column, j = table.columns[k], table.places[k]
            if j is None:
                continue
            if column.reading.kind == "empty":
                if not self._revised[k] and present[:, k].any():
                    self._revised[k] = self.rows + int(np.argmax(present[:, k])) + 1
                    self._add_example(k, plain, j, present[:, k])
                continue
            unread = plain.text[present[:, k], j] != NO_TEXT
            changed = column.changed and not self._revised[k]
            if changed or (column.reading.kind in _UNREAD_KINDS and self._runs(k, unread)):
                rows = 1 + table.changes.get(k, len(present) - 1)
                self._revised[k] = self.rows + rows
                self._examples[k] = ()
                others = present[:rows, k] if changed else plain.text[:, j] != NO_TEXT
                self._add_example(k, plain, j, others)
                how = "words, and numbers by ranges" if changed else "words"
                message = (
                    f"{_quoted(column)} was a {column.reading.kind}; its last {RUN} values are "
                    f"others, which are learned by their {how}"
                )
                notices.append(Notice("column-changed", column.name, message))
        for k in self._identifiers:
            column = table.columns[k]
            if self._repeats(k) and self._is_new("identifier-repeats", column.name):
                message = (
                    f"{_quoted(column)} was taken for an identifier and is not learned, but its "
                    'values repeat; "prepare": {"columns": {NAME: "category"}} learns them'
                )
                notices.append(Notice("identifier-repeats", column.name, message))
        return notices

    def _watched(self, table: TableRows) -> list[int]:
        """Return the columns that rows may revise, or whose runs they may end."""
        watched = {*self._late, *self._running, *table.with_texts}
        watched.update(k for k in self._columns.changed if not self._revised[k])
        return sorted(watched)

    def _runs(self, k: int, unread: NDArray[np.bool_]) -> bool:
        """Count consecutive unread values of column k; return whether they reach RUN now."""
        if not len(unread):
            return False
        before = int(self._unread_run[k])
        read = np.flatnonzero(~unread)
        first = int(read[0]) if len(read) else len(unread)
        gaps = np.diff(np.concatenate([read, [len(unread)]])) - 1
        longest = max(before + first, int(gaps.max(initial=0)))
        run = min(before + first if not len(read) else int(gaps[-1]), RUN)
        self._unread_run[k] = run
        (self._running.add if run else self._running.discard)(k)
        return before < RUN <= longest

    def _repeats(self, k: int) -> bool:
        given = self.rows - self._missing[k]
        if k >= COUNTED_COLUMNS or not _ROWS_OF_IDENTIFIERS <= given <= COUNTED_ROWS:
            return False
        distinct = _distinct(int(self._filled[k]))
        return distinct is not None and 2 * distinct < given

    def _add_example(self, k: int, cells: Cells, j: int, wanted: NDArray[np.bool_]) -> None:
        """Add the last wanted value of column k to its examples."""
        shown = _shown(cells, int(np.flatnonzero(wanted)[-1]), j)
        if shown is not None and len(self._examples[k]) < EXAMPLES:
            self._examples[k] = (*self._examples[k], shown)

    def _unread(self, table: TableRows) -> list[Notice]:
        notices = list[Notice]()
        for column, row, text in unread_values(table):
            if self._is_new("unread-value", column.name):
                message = (
                    f"{_quoted(column)} is a {column.reading.kind}; sample "
                    f"{self.rows + row + 1} has {text!r}, which is missing there and learned by "
                    "its words"
                )
                notices.append(Notice("unread-value", column.name, message))
        return notices

    def _is_new(self, slug: str, column: str) -> bool:
        """Return whether a notice was not given before; it is given now."""
        new = (slug, column) not in self._notices_given
        self._notices_given.add((slug, column))
        return new

    def view(self) -> FactsView:
        """Return an immutable copy."""
        return FactsView(
            self.rows,
            self._missing.copy(),
            self._low.copy(),
            self._high.copy(),
            self._filled.copy(),
            tuple(self._examples),
            self._revised.copy(),
        )

    def plain(self) -> dict[str, Any]:
        """Return the state without arrays, as plain data."""
        read = [[list(h) if isinstance(h, tuple) else h for h in how] for how in self._read]
        given = sorted([slug, column or ""] for slug, column in self._notices_given)
        return {"rows": self.rows, "examples": self._examples, "read": read, "told": given}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state."""
        return {
            "columns_missing": self._missing.copy(),
            "columns_low": self._low.copy(),
            "columns_high": self._high.copy(),
            "columns_bits": np.packbits(self._bits, axis=1),
            "columns_unread_run": self._unread_run.copy(),
            "columns_revised": self._revised.copy(),
        }

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `plain` and `arrays` returned. Raises ValueError for anything else."""
        self.rows = int(plain["rows"])
        self._examples = [tuple(map(_shortened, texts)) for texts in plain["examples"]]
        self._read = tuple(
            tuple(tuple(h) if isinstance(h, list) else h for h in how) for how in plain["read"]
        )
        self._notices_given = {(slug, column or None) for slug, column in plain["told"]}
        names = ("columns_missing", "columns_low", "columns_high")
        self._missing, self._low, self._high = (np.array(arrays[n], np.float64) for n in names)
        bits = np.unpackbits(np.array(arrays["columns_bits"], np.uint8), axis=1)
        self._bits = bits.astype(np.bool_)
        d = len(self._examples)
        self._unread_run = np.array(arrays["columns_unread_run"], np.int64)
        self._running = set(np.flatnonzero(self._unread_run).tolist())
        self._revised = np.array(arrays["columns_revised"], np.int64)
        each = self._missing, self._low, self._high, self._unread_run, self._revised
        shapes = {array.shape for array in each}
        if shapes != {(d,)} or self._bits.shape != (min(d, COUNTED_COLUMNS), BITS):
            raise ValueError("the saved facts are of other columns")
        self._filled = np.zeros(d, np.int64)
        self._filled[: len(self._bits)] = self._bits.sum(axis=1)


@compiled
def _include(
    numbers: Float64Array,
    is_number: NDArray[np.bool_],
    present: NDArray[np.bool_],
    missing: Float64Array,
    low: Float64Array,
    high: Float64Array,
) -> None:
    """Count missing values, and widen the ranges of numbers, by rows (n, d)."""
    for j in range(numbers.shape[1]):
        for i in range(numbers.shape[0]):
            missing[j] += 0.0 if present[i, j] else 1.0
            if is_number[i, j]:
                low[j] = smaller(low[j], numbers[i, j])
                high[j] = larger(high[j], numbers[i, j])


@compiled
def _set_bits(
    codes: Float64Array,
    given: NDArray[np.bool_],
    bits: NDArray[np.bool_],
    filled: NDArray[np.int64],
) -> None:
    """Set the bits of values (n, d), and count those that were not set before.

    given: which values are not missing.
    bits: (d, BITS).
    filled: (at least d,) number of bits set in each column.
    """
    for j in range(codes.shape[1]):
        for i in range(codes.shape[0]):
            if given[i, j]:
                bit = np.int64(codes[i, j] * (BITS / LARGEST_CODE)) % BITS
                filled[j] += 0 if bits[j, bit] else 1
                bits[j, bit] = True


def unread_values(table: TableRows) -> Iterator[tuple[Column, int, str]]:
    """Yield each column with a text that its kind cannot read, the row of the first, and the text.

    Columns that came late can read any text.
    """
    plain = table.read
    for k in table.with_texts:
        column, j = table.columns[k], table.places[k]
        if column.reading.kind in _UNREAD_KINDS:
            row = int(np.argmax(plain.text[:, j] != NO_TEXT))
            yield column, row, _shortened(plain.texts[plain.text[row, j]])


def _first(cells: Cells, rows: int) -> Cells:
    """Return at most the first `rows` rows, so that results do not depend on blocks."""
    return cells if len(cells.numbers) <= rows else cells.rows(0, rows)


def _shown(cells: Cells, i: int, j: int) -> str | None:
    """Return the value in row i and column j as an example; None if it is missing."""
    place, number = int(cells.text[i, j]), float(cells.numbers[i, j])
    if place != NO_TEXT:
        return _shortened(cells.texts[place])
    return None if math.isnan(number) else _shortened(text_of(number))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_EXAMPLE else f"{text[: _LONGEST_EXAMPLE - 1]}…"


def _quoted(column: Column) -> str:
    return f"`{_shortened(column.name)}`"
