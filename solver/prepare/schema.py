"""What the columns of a table are, and its rows as numbers and codes.

A column of numbers is a number; one of texts is a category; one that had both, in the first
samples, is both. A name that the table does not have is refused; one that a row lacks is a missing
value. `settling` finds the columns. A learner of the rows starts over with each change of
`layout`.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import (
    MOMENT_COLUMNS,
    NO_TEXT,
    Cells,
    code_of,
    moment_columns,
    seconds_of,
    text_of,
)
from wolfstream.solver.prepare.columns import MOST_SLOTS, Layout

SETTLING = 128
_LARGEST_MOMENT = 1e12
_LONGEST_ECHO = 40


class Misfit(ValueError):
    """A value that a table cannot take. row, name: where it is; name is None for a whole row."""

    def __init__(self, row: int, name: str | None, detail: str) -> None:
        super().__init__(detail)
        self.row, self.name, self.detail = row, name, detail

    @property
    def named_detail(self) -> str:
        """What is wrong, with the name that it is about."""
        return self.detail if self.name is None else f"{self.name[:_LONGEST_ECHO]!r} {self.detail}"


class Column(NamedTuple):
    """A column of a table.

    number: whether it has numbers. texts: those that have a code of their own, by that. slots: of
    the texts; 0 without any. moment: whether its values are moments of time.
    """

    name: str
    number: bool = False
    texts: tuple[str, ...] = ()
    slots: int = 0
    moment: bool = False

    @property
    def numeric(self) -> bool:
        """Whether it is learned as a number; so is a column of which nothing is known."""
        return self.number or not self.slots

    @property
    def kind(self) -> str:
        """In a word."""
        if self.moment:
            return "timestamp"
        if not self.slots:
            return "number"
        return "number or category" if self.number else "category"


class Schema(NamedTuple):
    """The columns of a table. named: whether rows come by name. samples: seen while it settled.

    moments: names of columns that are moments of time. strict: a missing value is refused.
    """

    columns: tuple[Column, ...] = ()
    named: bool = True
    samples: int = 0
    moments: frozenset[str] = frozenset()
    strict: bool = False

    @property
    def settled(self) -> bool:
        """Whether the columns stay what they are."""
        return self.samples >= SETTLING

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns, in their order."""
        return tuple(column.name for column in self.columns)

    def plain(self) -> dict[str, Any]:
        """Return all that `schema_from_plain` needs."""
        columns = [[c.name, c.number, list(c.texts), c.slots, c.moment] for c in self.columns]
        return {**self._asdict(), "columns": columns, "moments": sorted(self.moments)}


def schema_from_plain(plain: dict[str, Any]) -> Schema:
    """Return what `Schema.plain` gave. Raises ValueError for what it never gives."""
    columns = tuple(
        Column(name, number, tuple(texts), slots, moment)
        for name, number, texts, slots, moment in plain["columns"]
    )
    names = {column.name for column in columns}
    slots_fit = all(c.slots in (0, 2, 4, 8, 16, MOST_SLOTS) for c in columns)
    texts_fit = all(len(c.texts) <= MOST_SLOTS for c in columns)
    if len(names) < len(columns) or not slots_fit or not texts_fit:
        raise ValueError("the saved schema has columns that no rows make")
    return Schema(**{**plain, "columns": columns, "moments": frozenset(plain["moments"])})


def settled_numbers(names: tuple[str, ...], *, strict: bool) -> Schema:
    """Return a table of columns that are known to be numbers."""
    columns = tuple(Column(name, number=True) for name in names)
    return Schema(columns, samples=SETTLING, strict=strict)


def check(schema: Schema, cells: Cells) -> None:
    """Raise Misfit for a value that a table cannot take."""
    places = places_of(schema, cells)
    for column, j in zip(schema.columns, places, strict=True):
        if j is None:
            if schema.strict and len(cells.numbers):
                raise Misfit(0, column.name, "is missing, and the model has no prepare to fill it")
            continue
        texts = cells.text[:, j] != NO_TEXT
        if column.moment:
            check_moments(column, cells, j)
        elif texts.any() and not column.slots:
            raise Misfit(
                int(np.argmax(texts)),
                column.name,
                "must be a number, as in the model's first samples, not text; null if it is "
                "missing",
            )
        if schema.strict:
            missing = np.isnan(cells.numbers[:, j])
            if missing.any():
                row = int(np.argmax(missing))
                raise Misfit(row, column.name, "is missing, and the model has no prepare")


def layout(schema: Schema, *, indicators: bool = False) -> Layout:
    """Return the layout of what `encode` gives."""
    numbers = list[int]()
    categories, slots, of_missing = list[int](), list[int](), list[int]()
    at = 0
    for column in schema.columns:
        of_missing.append(at)
        if column.moment:
            numbers += range(at, at + MOMENT_COLUMNS)
            at += MOMENT_COLUMNS
            continue
        if column.numeric:
            numbers.append(at)
            at += 1
        if column.slots:
            categories.append(at)
            slots.append(column.slots)
            at += 1
    return Layout(
        tuple(numbers), tuple(categories), tuple(slots), tuple(of_missing) if indicators else ()
    )


def encode(schema: Schema, cells: Cells) -> Float64Array:
    """Return rows that fit as numbers and codes, NaN where missing: (n, columns of the layout)."""
    parts = list[Float64Array]()
    codes = np.array([*map(code_of, cells.texts), np.nan])
    place_of = {text: place for place, text in enumerate(cells.texts)}
    for column, j in zip(schema.columns, places_of(schema, cells), strict=True):
        parts += _encoded_column(column, cells, j, codes, place_of)
    return np.concatenate([part.reshape(len(cells.numbers), -1) for part in parts], axis=1)


def _encoded_column(
    column: Column, cells: Cells, j: int | None, codes: Float64Array, place_of: Mapping[str, int]
) -> list[Float64Array]:
    """Return a column as numbers, as codes, or as both.

    codes: of the cells' texts that have none of their own, and NaN for no text. place_of: the
    texts' places in there.
    """
    n = len(cells.numbers)
    numbers = np.full(n, np.nan) if j is None else cells.numbers[:, j]
    if column.moment:
        return [moment_columns(numbers if j is None else _seconds(cells, j))]
    parts = [numbers] if column.numeric else []
    if column.slots:
        parts.append(np.full(n, np.nan) if j is None else _codes(column, cells, j, codes, place_of))
    return parts


def _codes(
    column: Column, cells: Cells, j: int, codes: Float64Array, place_of: Mapping[str, int]
) -> Float64Array:
    """Return the codes (n,) of a column's texts in the cells' column j; NaN where one is missing.

    codes, place_of: as in `_encoded_column`.
    """
    own = {text: float(code) for code, text in enumerate(column.texts)}
    here = [text for text in own if text in place_of]
    places = [place_of[text] for text in here]
    shared = codes[places]
    codes[places] = [own[text] for text in here]
    found = codes[cells.text[:, j]]
    codes[places] = shared
    if not column.number:
        numbers = cells.numbers[:, j]
        for i in np.flatnonzero(~np.isnan(numbers)):
            text = text_of(float(numbers[i]))
            found[i] = own.get(text, code_of(text))
    return found


def places_of(schema: Schema, cells: Cells) -> list[int | None]:
    """Where the cells have each column of the schema. Raises Misfit for names that it lacks."""
    width = len(schema.columns)
    if cells.names is None:
        if cells.numbers.shape[1] != width:
            detail = f"has {cells.numbers.shape[1]} values, the model's rows have {width}"
            raise Misfit(0, None, detail)
        return list(range(width))
    place: dict[str, int | None] = {name: j for j, name in enumerate(cells.names)}
    known = schema.names
    known_names = frozenset(known)
    for name, j in place.items():
        if name not in known_names and cells.given[:, j].any():
            raise Misfit(int(np.argmax(cells.given[:, j])), name, unknown_name(name, known))
    return [place.get(name) for name in known]


def unknown_name(name: str, known: tuple[str, ...]) -> str:
    """Return the message for an unknown name, with the similar one that may be meant."""
    close = get_close_matches(name[:_LONGEST_ECHO], known, 1)
    if close:
        return f"is no name that the model knows; did you mean {close[0]!r}?"
    listed = ", ".join(known)[:200]
    return f"is no name that the model knows; leave it out, or make a new model: it has {listed}"


def _seconds(cells: Cells, j: int) -> Float64Array:
    """Return a column of moments in seconds since 1970; texts that are no moments become NaN."""
    by_place = np.array([*map(seconds_of, cells.texts), np.nan])
    texts = cells.text[:, j]
    seconds: Float64Array = np.where(texts == NO_TEXT, cells.numbers[:, j], by_place[texts])
    return seconds


def check_moments(column: Column, cells: Cells, j: int) -> None:
    """Refuse what is no moment in the cells' column j. Raises Misfit."""
    seconds = _seconds(cells, j)
    wrong = np.isnan(seconds) & (cells.text[:, j] != NO_TEXT)
    wrong |= np.abs(np.where(np.isnan(seconds), 0.0, seconds)) > _LARGEST_MOMENT
    if wrong.any():
        detail = (
            "must be a date and time in the form of ISO 8601, such as 2026-05-17T08:30:00Z, or "
            "seconds since 1970"
        )
        raise Misfit(int(np.argmax(wrong)), column.name, detail)
