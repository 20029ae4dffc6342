"""What the columns of a table are, as its first samples show it.

The first SETTLING samples settle which names there are and what each holds: until then a row may
bring new names beside all known ones. Texts that a settled table meets later take the codes that
are left.

Rows of numbers are no table where more than half of the names of an early row are new while it
lacks others, where names are whole numbers, as in sparse formats, or where a row has more names
than MOST_COLUMNS. Such rows are sparse: new names come at any time, and an absent one is zero.
"""

import numpy as np

from wolfstream.solver.prepare.cells import NO_TEXT, Cells
from wolfstream.solver.prepare.columns import MOST_SLOTS, own_codes
from wolfstream.solver.prepare.schema import (
    SETTLING,
    Column,
    Misfit,
    Schema,
    check,
    check_moments,
    places_of,
    unknown_name,
)

# Rows of more names are sparse: learners of dense rows become slow beyond.
MOST_COLUMNS = 256
# Of all categories of a table together.
MOST_SLOTS_IN_ALL = 128
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
        if i < rows:
            rest = cells.rows(i, rows)
            check(schema, rest)
            schema = _with_texts(schema, rest)
    except Misfit as misfit:
        raise Misfit(misfit.row + i, misfit.name, misfit.detail) from None
    return schema


def _with_row(schema: Schema, row: Cells) -> Schema | None:
    """Return the schema after one more of the first rows. Raises Misfit."""
    if row.names is not None and schema.named:
        given = [name for name, has in zip(row.names, row.given[0], strict=True) if has]
        columns = _widened(schema, given, row)
        if columns is None:
            return None
        schema = schema._replace(columns=columns)
    elif not schema.columns:
        columns = tuple(Column(str(j)) for j in range(row.numbers.shape[1]))
        schema = schema._replace(columns=columns, named=False)
    columns = _bounded(_seen(schema, row))
    return schema._replace(columns=columns, samples=schema.samples + 1)


def _widened(schema: Schema, given: list[str], row: Cells) -> tuple[Column, ...] | None:
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
        raise Misfit(0, new[0], unknown_name(new[0], known) + _BESIDE)
    if len(known) + len(new) > MOST_COLUMNS and not row.whole:
        if may_be_sparse:
            return None
        detail = f"is one name too many: a table by rows has at most {MOST_COLUMNS}"
        raise Misfit(0, new[-1], detail)
    if not new:
        return schema.columns
    brought = (Column(name, moment=name in schema.moments) for name in new)
    return (*schema.columns, *brought)


def _is_tabular(schema: Schema, given: list[str], row: Cells) -> bool:
    """Return whether there are values that sparse rows never have, such as texts."""
    if any(column.slots or column.moment for column in schema.columns):
        return True
    missing = row.given & np.isnan(row.numbers)
    return bool(missing.any()) or not schema.moments.isdisjoint(given)


def _are_indices(names: list[str]) -> bool:
    """Return whether names are whole numbers, as those of sparse formats; so are no names."""
    return all(name.isdecimal() for name in names)


def _seen(schema: Schema, row: Cells) -> tuple[Column, ...]:
    """Return the columns after one more of the first rows. Raises Misfit.

    Rows may be wide, and most change no column: one that stays is the same object.
    """
    columns, places = list(schema.columns), places_of(schema, row)
    at = np.array([-1 if j is None else j for j in places], np.int64)
    text = np.append(row.text[0], NO_TEXT)[at]
    known = np.append(~np.isnan(row.numbers[0]), False)[at]
    is_number = np.array([column.number for column in columns], np.bool_)
    is_moment = np.array([column.moment for column in columns], np.bool_)
    may_change = (text != NO_TEXT) | (known & ~is_number) | (is_moment & (at >= 0))
    for k in may_change.nonzero()[0].tolist():
        column = columns[k]
        if column.moment:
            check_moments(column, row, int(at[k]))
        elif text[k] != NO_TEXT:
            columns[k] = _with_text(column, row.texts[text[k]], MOST_SLOTS)
        else:
            columns[k] = column._replace(number=True)
    same = all(new is old for new, old in zip(columns, schema.columns, strict=True))
    return schema.columns if same else tuple(columns)


def _with_text(column: Column, text: str, slots: int) -> Column:
    """Return a column that has met a text, with a code of its own while there are any."""
    if text in column.texts or len(column.texts) >= own_codes(slots):
        return column
    return column._replace(texts=(*column.texts, text))


def _bounded(columns: tuple[Column, ...]) -> tuple[Column, ...]:
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
    return tuple(
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


def _with_texts(schema: Schema, cells: Cells) -> Schema:
    """Return a settled schema whose free codes are taken by texts that it has not met."""
    columns = list(schema.columns)
    for k, j in enumerate(places_of(schema, cells)):
        column = columns[k]
        free = own_codes(column.slots) - len(column.texts) if column.slots else 0
        if j is None or free <= 0:
            continue
        places, first = np.unique(cells.text[:, j], return_index=True)
        for place in places[np.argsort(first)].tolist():
            if place != NO_TEXT:
                columns[k] = _with_text(columns[k], cells.texts[place], column.slots)
    return schema._replace(columns=tuple(columns))
