"""What the columns of a table are, as its first samples show it.

The first SETTLING samples settle which names there are and what each holds: until then a row may
bring new names, and after 1, 2, 4, ... samples each column's kind is judged by all of its values so
far. Texts that a settled table meets later take the codes that are left; what it has no place for
is learned by its words.

Rows of numbers are no table where more than half of the names of an early row are new while it
lacks others, where names are whole numbers, as in sparse formats, or where a row has more names
than MOST_COLUMNS. Such rows are sparse: new names come at any time, and an absent one is zero.
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.prepare.cells import NO_TEXT, Cells, texts_in
from wolfstream.solver.prepare.columns import MOST_SLOTS, own_codes
from wolfstream.solver.prepare.kinds.judging import Reading, first_order, like_a_time
from wolfstream.solver.prepare.read_cells import read, readings
from wolfstream.solver.prepare.schema import (
    MOST_LATE,
    RUN,
    SETTLING,
    UNKNOWN_NAME,
    Column,
    Columns,
    Head,
    Misfit,
    Schema,
    is_sentence,
    may_be_sentence,
    places_of,
)
from wolfstream.solver.prepare.table_rows import TableRows, check, uncategorised

# Rows of more names are sparse: learners of dense rows become slow beyond.
MOST_COLUMNS = 256
# Of a text with a code of its own.
_LONGEST_TEXT = 256
# Of all categories of a table together.
MOST_SLOTS_IN_ALL = 128
# Of all words, and of all units, of a table that are columns together.
MOST_WITHIN_IN_ALL = 96
# What the text of a number begins with.
_OF_NUMBERS = tuple("0123456789+-. ")
# Kinds that sparse rows may seem to have.
_OF_SPARSE = ("number", "empty")
_BESIDE = (
    "; a new name may come beside all others, null where a value is missing, in the first "
    f'{SETTLING} samples; where an absent name means zero, make a model with "prepare": '
    '{"named": "sparse"}'
)


def extended(schema: Schema, cells: Cells) -> Schema | None:
    """The schema after some more rows; None if they show that rows are sparse. Raises Misfit."""
    i, rows = 0, len(cells.numbers)
    try:
        while i < rows and not schema.settled:
            wider = _with_row(schema, cells.rows(i, i + 1))
            if wider is None:
                return None
            schema, i = wider, i + 1
        return taken(TableRows(schema, cells.rows(i, rows))).schema if i < rows else schema
    except Misfit as misfit:
        raise misfit.moved(i) from None


def taken(table: TableRows) -> TableRows:
    """Return rows of a settled table with the schema after them. Raises Misfit."""
    check(table)
    schema, changes = _with_texts(table), dict[int, int]()
    if not schema.strict and (table.cells.texts or schema.columns.layout.categories):
        table = table.by(_with_order(schema, table))
        schema, changes = _with_runs(table)
        table = table.by(schema, changes)
        if not schema.spilled and table.spilled is not None:
            schema = schema._replace(spilled=True)
    return table.by(_with_late(schema, table.cells), changes)


def _with_row(schema: Schema, row: Cells) -> Schema | None:
    """Return the schema after one more of the first rows. Raises Misfit."""
    before = schema.columns
    if row.names is not None and schema.named and not _has_all_names(schema, row):
        given = [name for name, has in zip(row.names, row.given[0], strict=True) if has]
        columns = _widened(schema, given, row)
        if columns is None:
            return None
        schema = schema._replace(columns=columns)
    elif not schema.columns:
        names = [str(j) for j in range(row.numbers.shape[1])]
        pairs = zip(names, readings(names, [row], dict(schema.fixed), ()), strict=True)
        columns = Columns(Column(name, reading=reading) for name, reading in pairs)
        schema = schema._replace(columns=columns, named=False)
    head = Head((*schema.head.rows, row))
    schema = schema._replace(samples=schema.samples + 1)
    columns = _judged(schema, head) or _seen(schema, row)
    if columns is not before:
        columns = _bounded(columns)
    return schema._replace(columns=columns, head=Head() if schema.settled else head)


def _has_all_names(schema: Schema, row: Cells) -> bool:
    """Return whether a row of an array has a value under each name of the schema, and no other."""
    return row.whole and row.names == schema.names and bool(row.given.all())


def _judged(schema: Schema, head: Head) -> Columns | None:
    """Return the columns as all first rows make them, if these show other kinds or reasons.

    Else None. Kinds are judged after 1, 2, 4, ... samples. Values that are read as before leave
    what was made of them. head: all rows so far.
    """
    n = schema.samples
    if n & (n - 1) or len(head.rows) < n:
        return None
    like_times = schema.columns.like_times
    judged = readings(schema.names, head.rows, dict(schema.fixed), like_times)
    if judged and all(reading.kind == "identifier" for reading in judged):
        # Something must be learned.
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
        return _seen(schema._replace(columns=columns), head.rows[-1])
    columns = Columns(Column(column.name, reading=reading) for column, reading in pairs)
    for row in head.rows:
        columns = _seen(schema._replace(columns=columns), row)
    return columns


def _is_read_alike(reading: Reading, other: Reading) -> bool:
    """Return whether two readings read the same of each value; quick for the same object."""
    return reading is other or reading.how == other.how


def _few_within(judged: list[Reading]) -> list[Reading]:
    """Return readings whose words and units are few columns together, each with its share."""
    having = [reading for reading in judged if reading.words or reading.units]
    share = MOST_WITHIN_IN_ALL // max(len(having), 1)
    if sum(len(reading.words) for reading in having) > MOST_WITHIN_IN_ALL:
        judged = [reading._replace(words=reading.words[:share]) for reading in judged]
    if sum(len(reading.units) for reading in having) > MOST_WITHIN_IN_ALL:
        judged = [reading._replace(units=reading.units[:share]) for reading in judged]
    return judged


def _widened(schema: Schema, given: list[str], row: Cells) -> Columns | None:
    """Return the columns with those that a row brings; None if rows are sparse. Raises Misfit."""
    known = schema.names
    known_names = frozenset(known)
    new = [name for name in given if name not in known_names]
    may_be_sparse = not row.whole and not _is_tabular(schema, given, row)
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
    of_new = readings(new, [row], dict(schema.fixed), like_times)
    brought = (Column(name, reading=reading) for name, reading in zip(new, of_new, strict=True))
    return Columns((*schema.columns, *brought))


def _is_tabular(schema: Schema, given: list[str], row: Cells) -> bool:
    """Return whether there are values that sparse rows never have, such as texts."""
    if any(column.slots or column.reading.kind not in _OF_SPARSE for column in schema.columns):
        return True
    missing = row.given & np.isnan(row.numbers)
    return bool(missing.any()) or not {name for name, _ in schema.fixed}.isdisjoint(given)


def _are_indices(names: list[str]) -> bool:
    """Return whether names are whole numbers, as those of sparse formats; so are no names."""
    return all(name.isdecimal() for name in names)


def _seen(schema: Schema, row: Cells) -> Columns:
    """Return the columns after one more of the first rows. Raises Misfit.

    Rows may be wide, and most change no column: one that stays is the same object.
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
    same = all(new is old for new, old in zip(columns, schema.columns, strict=True))
    return schema.columns if same else Columns(columns)


def _with_text(column: Column, text: str, slots: int) -> Column:
    """Return a column that has met a text, with a code of its own while there are any."""
    has_no_use = text in column.texts or len(text) > _LONGEST_TEXT
    if has_no_use or len(column.texts) >= own_codes(slots):
        return column
    return column._replace(texts=(*column.texts, text))


def _bounded(columns: Columns) -> Columns:
    """The columns with slots for their texts, in all at most MOST_SLOTS_IN_ALL if they can."""
    slots = [_SLOTS[len(column.texts)] for column in columns]
    excess, size = sum(slots) - MOST_SLOTS_IN_ALL, MOST_SLOTS
    while excess > 0 and size > 2:
        # The largest are halved in their order, as many as it takes.
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
    """Return a power of two that leaves room for texts to come."""
    if not texts:
        return 0
    slots = 4
    while slots < MOST_SLOTS and own_codes(slots) < texts:
        slots *= 2
    return slots


# By the number of a column's texts with codes of their own.
_SLOTS = [_slots_for(texts) for texts in range(MOST_SLOTS + 1)]


def _with_texts(table: TableRows) -> Schema:
    """Return a settled schema whose free codes are taken by texts that it has not met."""
    schema = table.schema
    if not table.cells.texts or not schema.columns.with_free_codes:
        return schema
    columns, cells = list(schema.columns), table.read
    for k in schema.columns.with_free_codes:
        j = table.places[k]
        if j is None:
            continue
        for place in dict.fromkeys(cells.text[:, j].tolist()):
            if place != NO_TEXT and not is_sentence(columns[k], cells.texts[place]):
                columns[k] = _with_text(columns[k], cells.texts[place], columns[k].slots)
    return _with_columns(schema, columns)


def _with_columns(schema: Schema, columns: Sequence[Column]) -> Schema:
    """Return a schema with these columns: the same object where they are the same."""
    same = all(new is old for new, old in zip(columns, schema.columns, strict=True))
    return schema if same else schema._replace(columns=Columns(columns))


def _with_order(schema: Schema, table: TableRows) -> Schema:
    """Return a settled schema that knows of dates whether day or month comes first.

    Where the first samples left it open, the first date decides that can be read in one way alone.
    """
    columns = list(schema.columns)
    for k in schema.columns.unordered:
        j = table.places[k]
        if j is None:
            continue
        order = first_order(table.cells.texts[place] for place in texts_in(table.cells, [j]))
        if order:
            reading = columns[k].reading._replace(day_first=order == "day", ordered=True)
            columns[k] = columns[k]._replace(reading=reading)
    return _with_columns(schema, columns)


def first_order_row(table: TableRows) -> int | None:
    """Return the row whose dates are the first to show whether day or month comes first.

    None if none does, of columns of which it is still open.
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
            for row, place in enumerate(cells.text[:, j].tolist())
            if place != NO_TEXT and first_order((cells.texts[place],))
        )
        rows += islice(showing, 1)
    return min(rows, default=None)


def _with_runs(table: TableRows) -> tuple[Schema, dict[int, int]]:
    """Return a settled schema that has counted what is none of its columns' categories.

    Beside it, the columns that have become others, and the row with which each has.
    """
    columns, changes = list(table.schema.columns), dict[int, int]()
    for k, runs in _runs(table).items():
        columns[k] = columns[k]._replace(run=int(runs[-1]))
        if columns[k].changed:
            changes[k] = int(np.argmax(runs >= RUN))
    return _with_columns(table.schema, columns), changes


def _runs(table: TableRows) -> dict[int, NDArray[np.int64]]:
    """Return `Column.run` after each row (n,), of the columns in which the rows change it."""
    columns = table.schema.columns
    watched = [
        (columns[k], k, j) for k in columns.categorical if (j := table.places[k]) is not None
    ]
    may_change = any(column.run for column, _, _ in watched)
    if not may_change and not _may_change(table.cells, [j for _, _, j in watched]):
        return {}
    left, changed = table.read, dict[int, NDArray[np.int64]]()
    for column, k, j in watched:
        others = uncategorised(column, left, j)
        present = (left.text[:, j] != NO_TEXT) | ~np.isnan(left.numbers[:, j])
        runs = _run_lengths(others[present], column.run)[np.cumsum(present)]
        if (runs != column.run).any():
            changed[k] = runs
    return changed


def _run_lengths(others: NDArray[np.bool_], run: int) -> NDArray[np.int64]:
    """Return the length (n + 1,) of the run before the first value and after each, up to `RUN`.

    A run that has reached that stays. run: before the first value. others: whether each continues.
    """
    place = np.arange(len(others) + 1)
    ended = np.maximum.accumulate(np.where([True, *~others], place, 0))
    lengths = place - ended + np.where(ended == 0, run, 0)
    return np.where(np.maximum.accumulate(lengths) >= RUN, RUN, lengths)


def _may_change(cells: Cells, places: list[int]) -> bool:
    """Return False, after a short look, if all values at these places are categories."""
    if not places:
        return False
    if not np.isnan(cells.numbers[:, places]).all():
        return True
    texts = (cells.texts[place] for place in texts_in(cells, places))
    return any(may_be_sentence(text) or text[:1] in _OF_NUMBERS for text in texts)


def _with_late(schema: Schema, cells: Cells) -> Schema:
    """Return a settled schema that knows the names that came."""
    if not schema.open or cells.names is None or cells.names == schema.names:
        return schema
    known = {*schema.names, *schema.late}
    new = [j for j, name in enumerate(cells.names) if name not in known]
    given = [cells.names[j] for j in new if cells.given[:, j].any()]
    room = MOST_LATE - len(schema.late)
    return schema._replace(late=(*schema.late, *given[:room])) if given[:room] else schema
