"""Cells read by the kinds of their columns: texts that are numbers become these, the rest stays.

Words of texts come apart from them, as codes: those of columns of texts, and of whatever a settled
table has no place for, such as a text in a column of numbers or a name that came late.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, groupby
from math import isnan, log1p, nan
from operator import attrgetter
from typing import Protocol

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import NO_TEXT, Cells, text_of
from wolfstream.solver.prepare.kinds.judging import (
    EMPTY,
    NUMBER,
    Kind,
    Reading,
    Value,
    given_kind,
    judge,
)
from wolfstream.solver.prepare.kinds.numerals import amounts, numeral, plain_number
from wolfstream.solver.prepare.kinds.words import (
    MOST_CODES,
    codes_of_number,
    codes_of_words,
    column_key,
    words_of,
)

# So few texts in a column are read one by one.
_FEW = 4


def number_of(text: str) -> float | None:
    """Return the number that a text is, also with a unit or a currency; None for another text."""
    plain = plain_number(text.strip())
    quantity = numeral(text) if plain is None else None
    return plain if quantity is None else quantity.value


class ReadColumn(Protocol):
    """A column whose values are read."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def reading(self) -> Reading:
        """How."""


def read(columns: Sequence[ReadColumn], cells: Cells, places: Sequence[int | None]) -> Cells:
    """Return cells whose numbers and texts are what the columns' kinds make of them.

    places: of the columns in the cells. Of a column of texts the number is the logarithm of their
    length; one of identifiers has no value. A text that is neither read nor missing stays a text.
    """
    if not cells.texts and all(column.reading.plain for column in columns):
        return cells
    numbers, text = cells.numbers.copy(), cells.text.copy()
    has_numbers: list[bool] = np.any(~np.isnan(numbers), axis=0).tolist()
    n_texts: list[int] = np.not_equal(text, NO_TEXT).sum(axis=0).tolist()
    for column, j in zip(columns, places, strict=True):
        if j is None:
            continue
        reading = column.reading
        if has_numbers[j] and not reading.plain:
            there = ~np.isnan(numbers[:, j])
            numbers[there, j] = [_number(reading, x) for x in numbers[there, j].tolist()]
        if not n_texts[j]:
            continue
        has = np.flatnonzero(text[:, j] != NO_TEXT)
        if n_texts[j] <= _FEW:
            for i in has.tolist():
                numbers[i, j], stays = _value(reading, cells.texts[text[i, j]])
                if not stays:
                    text[i, j] = NO_TEXT
            continue
        present: list[int] = text[has, j].tolist()
        values = {place: _value(reading, cells.texts[place]) for place in dict.fromkeys(present)}
        numbers[has, j] = [values[place][0] for place in present]
        text[has, j] = [place if values[place][1] else NO_TEXT for place in present]
    return cells._replace(numbers=numbers, text=text)


def _number(reading: Reading, x: float) -> float:
    return log1p(len(text_of(x))) if reading.kind == "text" else reading.number_of(x)


def _value(reading: Reading, text: str) -> tuple[float, bool]:
    """Return a text's number, NaN where there is none, and whether it stays a text."""
    if reading.is_missing(text) or reading.kind == "identifier":
        return nan, False
    if reading.kind == "text":
        return log1p(len(text)), False
    number = reading.number(text)
    return number, isnan(number)


def within_texts(reading: Reading, cells: Cells, j: int | None) -> Float64Array:
    """Return what of the texts in the cells' column j are columns: (n, words + units).

    Whether a row has each word, 1 or 0, and its number before each unit; NaN where there is none.
    """
    width = len(reading.words) + len(reading.units)
    if j is None:
        return np.full((len(cells.numbers), width), nan)
    none, places = [nan] * width, cells.text[:, j].tolist()
    found = {
        place: none if place == NO_TEXT else _within_text(reading, cells.texts[place])
        for place in dict.fromkeys(places)
    }
    return np.array([found[place] for place in places]).reshape(-1, width)


def _within_text(reading: Reading, text: str) -> list[float]:
    present = set(words_of(text)) if reading.words else ()
    numbers = amounts(text) if reading.units else {}
    words = [float(word in present) for word in reading.words]
    return words + [numbers.get(unit, nan) for unit in reading.units]


def words(
    columns: Sequence[ReadColumn], cells: Cells, places: Sequence[int | None]
) -> Float64Array:
    """Return codes of words (n, MOST_CODES), all below 0, NaN where there are no more.

    columns: those whose words are learned.
    """
    of_rows: list[list[float]] = [[] for _ in range(len(cells.numbers))]
    for column, j in zip(columns, places, strict=True):
        if j is None:
            continue
        with_room = [i for i, found in enumerate(of_rows) if len(found) < MOST_CODES]
        for i, found in _codes(column, cells, j, with_room):
            of_rows[i] += found[: MOST_CODES - len(of_rows[i])]
    codes = np.full((len(of_rows), MOST_CODES), nan)
    counts = np.array([len(found) for found in of_rows], np.int64)
    codes[np.arange(MOST_CODES) < counts[:, None]] = list(chain.from_iterable(of_rows))
    return codes


def _codes(
    column: ReadColumn, cells: Cells, j: int, rows: Sequence[int]
) -> Iterator[tuple[int, list[float]]]:
    """Yield the codes of each of the rows that has any in the cells' column j."""
    key, reading = column_key(column.name), column.reading
    numbers, places = cells.numbers[:, j].tolist(), cells.text[:, j].tolist()
    for i in rows:
        place = places[i]
        if place != NO_TEXT:
            text = cells.texts[place]
            if not reading.is_missing(text):
                yield i, codes_of_words(key, text)
        elif numbers[i] == numbers[i]:
            yield i, codes_of_number(key, numbers[i])


def readings(
    names: Sequence[str],
    rows: Sequence[Cells],
    fixed: Mapping[str, Kind],
    like_times: Collection[str],
) -> list[Reading]:
    """Return how columns are read that have these values in the rows.

    Args:
        names: of the columns; rows without names have them in this order.
        rows: with the values.
        fixed: kinds that are given.
        like_times: the names that are like those of times.
    """
    numeric, textual = set[str](), {*fixed, *like_times}
    for given, alike in groupby(rows, attrgetter("names")):
        given = names if given is None else given
        with_number, with_text = np.zeros((2, len(given)), np.bool_)
        for cells in alike:
            with_number |= ~np.isnan(cells.numbers).all(axis=0)
            with_text |= (cells.text != NO_TEXT).any(axis=0)
        numeric |= {given[j] for j in np.flatnonzero(with_number).tolist()}
        textual |= {given[j] for j in np.flatnonzero(with_text).tolist()}
    # Of columns of numbers alone, which may be very many, no value is looked at.
    values: dict[str, list[Value]] = {name: [] for name in names if name in textual}
    for cells in rows if values else ():
        for j, name in enumerate(names if cells.names is None else cells.names):
            if name in values:
                values[name] += values_in(cells, j)
    found = list[Reading]()
    for name in names:
        if name in fixed:
            found.append(given_kind(fixed[name], values[name]))
        elif name in values:
            found.append(judge(name, values[name]))
        else:
            found.append(NUMBER if name in numeric else EMPTY)
    return found


def values_in(cells: Cells, j: int) -> Iterator[Value]:
    """Yield the values in the cells' column j."""
    for number, place in zip(cells.numbers[:, j].tolist(), cells.text[:, j].tolist(), strict=True):
        if place != NO_TEXT:
            yield cells.texts[place]
        else:
            yield None if isnan(number) else number
