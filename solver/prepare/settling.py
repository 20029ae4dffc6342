"""Determines the columns of a table from its first rows.

The first SETTLING rows determine the names and their kinds: until then a row may add names, and
after 1, 2, 4, ... rows the kind of each column is judged by all its values so far. Later, new texts
take the free codes of their columns, and what has no column is learned by its words.

Rows of numbers are sparse rows instead of a table if more than half of the names of an early row
are new while it lacks others, if names are integers, as in sparse formats, or if a row has more
than MOST_COLUMNS names. In sparse rows new names come at any time, and an absent one is zero. Where
unknown names are refused, only the first row can show that rows are sparse.
"""

from collections.abc import Sequence
from itertools import islice
from operator import is_

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.prepare.cells import NO_TEXT, Cells, texts_in
from wolfstream.solver.prepare.columns import MOST_SLOTS, own_codes
from wolfstream.solver.prepare.judging import ColumnReading, first_order, like_a_time
from wolfstream.solver.prepare.read_cells import read, readings
from wolfstream.solver.prepare.schema import (
    MOST_LATE,
    RUN,
    SETTLING,
    UNKNOWN_NAME,
    Column,
    Columns,
    FirstRows,
    Misfit,
    Schema,
    is_sentence,
    may_be_sentence,
    places_of,
)
from wolfstream.solver.prepare.table_rows import TableRows, check, uncategorised

# Rows with more names are sparse, since learners of dense rows would be slow.
MOST_COLUMNS = 256
# Longer texts have no code of their own.
_LONGEST_TEXT = 256
# The most slots of all categories of a table together.
MOST_SLOTS_IN_ALL = 128
# The most columns for words, and for units, of a table together.
MOST_WITHIN_IN_ALL = 96
# The first characters of numbers.
_NUMBER_BEGINNINGS = tuple("0123456789+-. ")
# The kinds that columns of sparse rows appear to have.
_SPARSE_KINDS = ("number", "empty")
_BESIDE = (
    "; a new name may come beside all others, null where a value is missing, in the first "
    f'{SETTLING} samples; where an absent name means zero, make a model with "prepare": '
    '{"named": "sparse"}'
)


def schema_after_first(schema: Schema, cells: Cells) -> Schema | None:
    """Return the schema after more rows; None if they show that rows are sparse. Raises Misfit."""
    i, rows = 0, len(cells.numbers)
    try:
        while i < rows and not schema.settled:
            wider = _after_row(schema, cells.rows(i, i + 1))
            if wider is None:
                return None
            schema, i = wider, i + 1
        return table_after(TableRows(schema, cells.rows(i, rows))).schema if i < rows else schema
    except Misfit as misfit:
        raise misfit.moved(i) from None


def table_after(table: TableRows) -> TableRows:
    """Return rows of a settled table by the schema after them. Raises Misfit."""
    check(table)
    schema, changes = _with_texts(table), dict[int, int]()
    if not schema.strict and (table.cells.texts or schema.columns.layout.categories):
        table = table.by(_with_order(schema, table))
        schema, changes = _with_runs(table)
        table = table.by(schema, changes)
        if not schema.spilled and table.spilled is not None:
            schema = schema._replace(spilled=True)
    return table.by(_with_late(schema, table.cells), changes)


def _after_row(schema: Schema, row: Cells) -> Schema | None:
    """Return the schema after one more of the first rows. Raises Misfit."""
    before = schema.columns
    if row.names is not None and schema.named and not _has_all_names(schema, row):
        given = [name for name, has in zip(row.names, row.given[0], strict=True) if has]
        columns = _with_new_names(schema, given, row)
        if columns is None:
            return None
        schema = schema._replace(columns=columns)
    elif not schema.columns:
        names = [str(j) for j in range(row.numbers.shape[1])]
        pairs = zip(names, readings(names, [row], dict(schema.fixed), ()), strict=True)
        columns = Columns(Column(name, reading=reading) for name, reading in pairs)
        schema = schema._replace(columns=columns, named=False)
    head = FirstRows((*schema.head.rows, row))
    schema = schema._replace(samples=schema.samples + 1)
    columns = _judged_again(schema, head) or _columns_after(schema, row)
    if columns is not before:
        columns = _with_slots(columns)
    return schema._replace(columns=columns, head=FirstRows() if schema.settled else head)


def _has_all_names(schema: Schema, row: Cells) -> bool:
    """Return whether a row of a table has exactly the names of the schema."""
    return row.whole and row.names == schema.names and bool(row.given.all())


def _judged_again(schema: Schema, head: FirstRows) -> Columns | None:
    """Return the columns judged by all rows so far; None if nothing changes or it is not the time.

    Columns whose values are read as before keep their texts.
    """
    n = schema.samples
    if n & (n - 1) or len(head.rows) < n:
        return None
    like_times = schema.columns.like_times
    judged = readings(schema.names, head.rows, dict(schema.fixed), like_times)
    if judged and all(reading.kind == "identifier" for reading in judged):
        # At least one column must be learned.
        judged[0] = judged[0]._replace(kind="category")
    judged = _few_within(judged)
    pairs = list(zip(schema.columns, judged, strict=True))
    if all(column.reading is reading or column.reading == reading for column, reading in pairs):
        return None
    if all(_is_read_alike(column.reading, reading) for column, reading in pairs):
        columns = Columns(
            column if column.reading == reading else column._replace(reading=reading)
            for column, reading in pairs
        )
        return _columns_after(schema._replace(columns=columns), head.rows[-1])
    columns = Columns(Column(column.name, reading=reading) for column, reading in pairs)
    for row in head.rows:
        columns = _columns_after(schema._replace(columns=columns), row)
    return columns


def _is_read_alike(reading: ColumnReading, other: ColumnReading) -> bool:
    """Return whether two readings read all values in the same way."""
    return reading is other or reading.how == other.how


def _few_within(judged: list[ColumnReading]) -> list[ColumnReading]:
    """Return readings with at most MOST_WITHIN_IN_ALL words and units, each with its share."""
    having = [reading for reading in judged if reading.words or reading.units]
    share = MOST_WITHIN_IN_ALL // max(len(having), 1)
    if sum(len(reading.words) for reading in having) > MOST_WITHIN_IN_ALL:
        judged = [reading._replace(words=reading.words[:share]) for reading in judged]
    if sum(len(reading.units) for reading in having) > MOST_WITHIN_IN_ALL:
        judged = [reading._replace(units=reading.units[:share]) for reading in judged]
    return judged


def _with_new_names(schema: Schema, given: list[str], row: Cells) -> Columns | None:
    """Return the columns and those that a row adds; None if rows are sparse. Raises Misfit."""
    known = schema.names
    known_names = frozenset(known)
    new = [name for name in given if name not in known_names]
    # As sparse rows, those of a strict table would never be refused again.
    settled = bool(known) and schema.names_are == "strict"
    may_be_sparse = not (settled or row.whole or _is_tabular(schema, given, row))
    if may_be_sparse and not known and _are_indices(given):
        return None
    lacks = not set(known).issubset(given)
    if new and known and (lacks or row.whole):
        if may_be_sparse and 2 * len(new) > len(given):
            return None
        if not schema.open:
            raise Misfit(0, new[0], UNKNOWN_NAME + _BESIDE, known)
    if len(known) + len(new) > MOST_COLUMNS and not row.whole:
        if may_be_sparse:
            return None
        detail = f"is one name too many: a table by rows has at most {MOST_COLUMNS}"
        raise Misfit(0, new[-1], detail)
    if not new:
        return schema.columns
    like_times = frozenset(filter(like_a_time, new))
    pairs = zip(new, readings(new, [row], dict(schema.fixed), like_times), strict=True)
    return Columns((*schema.columns, *(Column(name, reading=reading) for name, reading in pairs)))


def _is_tabular(schema: Schema, given: list[str], row: Cells) -> bool:
    """Return whether there were values that sparse rows never have, such as texts."""
    if any(column.slots or column.reading.kind not in _SPARSE_KINDS for column in schema.columns):
        return True
    missing = row.given & np.isnan(row.numbers)
    return bool(missing.any()) or not {name for name, _ in schema.fixed}.isdisjoint(given)


def _are_indices(names: list[str]) -> bool:
    """Return whether all names are integers, as in sparse formats."""
    return all(name.isdecimal() for name in names)


def _columns_after(schema: Schema, row: Cells) -> Columns:
    """Return the columns after one more of the first rows. Raises Misfit.

    A column that does not change is the same object, as most are.
    """
    if not row.texts and schema.columns.only_met_numbers and row.names == schema.names:
        return schema.columns
    columns, places = list(schema.columns), places_of(schema, row)
    row = read(columns, row, places)
    at = np.array([-1 if j is None else j for j in places], np.int64)
    text = np.append(row.text[0], NO_TEXT)[at]
    present = np.append(~np.isnan(row.numbers[0]), False)[at]
    is_number = np.array([column.number for column in columns], np.bool_)
    may_change = (text != NO_TEXT) | (present & ~is_number)
    for k in may_change.nonzero()[0].tolist():
        column = columns[k]
        if text[k] != NO_TEXT:
            columns[k] = _with_text(column, row.texts[text[k]], MOST_SLOTS)
        else:
            columns[k] = column._replace(number=True)
    same = len(columns) == len(schema.columns) and all(map(is_, columns, schema.columns))
    return schema.columns if same else Columns(columns)


def _with_text(column: Column, text: str, slots: int) -> Column:
    """Return a column after a text, which gets a code of its own if one is free."""
    text = column.reading.category(text)
    has_no_use = text in column.texts or len(text) > _LONGEST_TEXT
    if has_no_use or len(column.texts) >= own_codes(slots):
        return column
    return column._replace(texts=(*column.texts, text))


def _with_slots(columns: Columns) -> Columns:
    """Return the columns with slots for their texts, if possible MOST_SLOTS_IN_ALL in all."""
    slots = [_SLOTS[len(column.texts)] for column in columns]
    excess, size = sum(slots) - MOST_SLOTS_IN_ALL, MOST_SLOTS
    while excess > 0 and size > 2:
        # As many of the largest as necessary are halved, in order.
        largest = [j for j, count in enumerate(slots) if count == size]
        for j in largest[: -(-2 * excess // size)]:
            slots[j] = size // 2
            excess -= size // 2
        size //= 2
    if slots == [column.slots for column in columns]:
        return columns
    return Columns(
        column if column.slots == count else column._replace(slots=count)
        for column, count in zip(columns, slots, strict=True)
    )


def _slots_for(texts: int) -> int:
    """Return the number of slots for `texts` texts and some new ones, a power of two."""
    if not texts:
        return 0
    slots = 4
    while slots < MOST_SLOTS and own_codes(slots) < texts:
        slots *= 2
    return slots


# Number of texts with codes of their own -> number of slots.
_SLOTS = [_slots_for(texts) for texts in range(MOST_SLOTS + 1)]


def _with_texts(table: TableRows) -> Schema:
    """Return the settled schema after rows, whose new texts take free codes."""
    schema = table.schema
    if not table.cells.texts or not schema.columns.with_free_codes:
        return schema
    columns, cells = list(schema.columns), table.read
    for k in schema.columns.with_free_codes:
        j = table.places[k]
        if j is None:
            continue
        for index in dict.fromkeys(cells.text[:, j].tolist()):
            if index != NO_TEXT and not is_sentence(columns[k], cells.texts[index]):
                columns[k] = _with_text(columns[k], cells.texts[index], columns[k].slots)
    return _with_columns(schema, columns)


def _with_columns(schema: Schema, columns: Sequence[Column]) -> Schema:
    """Return a schema with other columns; the same object if all columns are the same objects."""
    same = len(columns) == len(schema.columns) and all(map(is_, columns, schema.columns))
    return schema if same else schema._replace(columns=Columns(columns))


def _with_order(schema: Schema, table: TableRows) -> Schema:
    """Return the settled schema after rows, whose dates may show whether day or month is first.

    If the first rows did not show it, the first date decides that has only one reading.
    """
    columns = list(schema.columns)
    for k in schema.columns.unordered:
        j = table.places[k]
        if j is None:
            continue
        order = first_order(table.cells.texts[index] for index in texts_in(table.cells, [j]))
        if order:
            reading = columns[k].reading._replace(day_first=order == "day", ordered=True)
            columns[k] = columns[k]._replace(reading=reading)
    return _with_columns(schema, columns)


def first_order_row(table: TableRows) -> int | None:
    """Return the first row whose dates show whether day or month is first; None if none does.

    Only columns count for which this is not known yet.
    """
    cells, rows = table.cells, list[int]()
    if not cells.texts:
        return None
    for k in table.schema.columns.unordered:
        j = table.places[k]
        if j is None:
            continue
        showing = (
            row
            for row, index in enumerate(cells.text[:, j].tolist())
            if index != NO_TEXT and first_order((cells.texts[index],))
        )
        rows += islice(showing, 1)
    return min(rows, default=None)


def _with_runs(table: TableRows) -> tuple[Schema, dict[int, int]]:
    """Return the settled schema after rows, and the columns that are no longer of categories.

    The latter are index -> row with which the column has changed.
    """
    columns, changes = list(table.schema.columns), dict[int, int]()
    for k, runs in _runs(table).items():
        columns[k] = columns[k]._replace(run=int(runs[-1]))
        if columns[k].changed:
            changes[k] = int(np.argmax(runs >= RUN))
    return _with_columns(table.schema, columns), changes


def _runs(table: TableRows) -> dict[int, NDArray[np.int64]]:
    """Return index -> `Column.run` after each row (n,), of the columns in which it changes."""
    columns = table.schema.columns
    watched = [
        (columns[k], k, j) for k in columns.categorical if (j := table.places[k]) is not None
    ]
    may_change = any(column.run for column, _, _ in watched)
    if not may_change and not _may_change(table.cells, [j for _, _, j in watched]):
        return {}
    cells, changed = table.read, dict[int, NDArray[np.int64]]()
    for column, k, j in watched:
        others = uncategorised(column, cells, j)
        present = (cells.text[:, j] != NO_TEXT) | ~np.isnan(cells.numbers[:, j])
        runs = _run_lengths(others[present], column.run)[np.cumsum(present)]
        if (runs != column.run).any():
            changed[k] = runs
    return changed


def _run_lengths(others: NDArray[np.bool_], run: int) -> NDArray[np.int64]:
    """Return the length (n + 1,) of the run before the first value and after each value.

    A run of RUN values stays so.

    others: (n,) whether each value continues the run.
    run: the length before the first value.
    """
    index = np.arange(len(others) + 1)
    ended = np.maximum.accumulate(np.where([True, *~others], index, 0))
    lengths = index - ended + np.where(ended == 0, run, 0)
    return np.where(np.maximum.accumulate(lengths) >= RUN, RUN, lengths)


def _may_change(cells: Cells, places: list[int]) -> bool:
    """Return False if all values in these columns of the cells are clearly categories."""
    if not places:
        return False
    if len(cells.numbers) == 1:
        row, row_texts = cells.numbers[0].tolist(), cells.text[0].tolist()
        return any(row[j] == row[j] for j in places) or any(
            _may_be_none(cells.texts[row_texts[j]]) for j in places if row_texts[j] != NO_TEXT
        )
    if not np.isnan(cells.numbers[:, places]).all():
        return True
    texts = (cells.texts[index] for index in texts_in(cells, places))
    return any(map(_may_be_none, texts))


def _may_be_none(text: str) -> bool:
    """Return False for a text that clearly is a category."""
    return may_be_sentence(text) or text[:1] in _NUMBER_BEGINNINGS


def _with_late(schema: Schema, cells: Cells) -> Schema:
    """Return the settled schema after cells with new names."""
    if not schema.open or cells.names is None or cells.names == schema.names:
        return schema
    known = {*schema.names, *schema.late}
    new = [j for j, name in enumerate(cells.names) if name not in known]
    given = [cells.names[j] for j in new if cells.given[:, j].any()]
    room = MOST_LATE - len(schema.late)
    return schema._replace(late=(*schema.late, *given[:room])) if given[:room] else schema
