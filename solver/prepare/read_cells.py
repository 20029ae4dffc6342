"""Reads cells by the kinds of their columns: texts that are numbers become numbers, others stay.

Codes of words are computed apart from them: for columns of texts, and for all that a settled table
has no column for, such as a text in a column of numbers or a name that came late.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, groupby
from math import isnan, log1p, nan
from operator import attrgetter
from typing import Protocol

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import NO_TEXT, Cells, text_of
from wolfstream.solver.prepare.judging import (
    EMPTY,
    LEAST_CODE,
    NUMBER,
    ColumnReading,
    Kind,
    Value,
    given_kind,
    judge,
)
from wolfstream.solver.prepare.numerals import (
    amounts,
    numeral,
    placed_numbers,
    plain_number,
)
from wolfstream.solver.prepare.words import (
    MOST_CODES,
    codes_of_number,
    codes_of_words,
    column_key,
    words_of,
)


def number_of(text: str) -> float | None:
    """Return the number that a text states, perhaps with a unit or currency; None if it is none."""
    plain = plain_number(text.strip())
    quantity = numeral(text) if plain is None else None
    return plain if quantity is None else quantity.value


class ReadColumn(Protocol):
    """A column whose values are read."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def reading(self) -> ColumnReading:
        """How its values are read."""


def read(columns: Sequence[ReadColumn], cells: Cells, places: Sequence[int | None]) -> Cells:
    """Return cells with their values read by the kinds of the columns.

    The number of a text in a column of texts is the logarithm of its length. Identifiers have no
    value. A text that is neither read nor missing stays a text.

    columns: how to read them.
    cells: as they came.
    places: index of each column in the cells; None if they lack it.
    """
    if not cells.texts and all(column.reading.plain for column in columns):
        return cells
    numbers, text = cells.numbers.copy(), cells.text.copy()
    readings = {
        j: column.reading for column, j in zip(columns, places, strict=True) if j is not None
    }
    changing = [j for j, reading in readings.items() if not reading.plain]
    for j in changing if not np.isnan(numbers[:, changing]).all() else ():
        is_number = ~np.isnan(numbers[:, j])
        numbers[is_number, j] = [_number(readings[j], x) for x in numbers[is_number, j].tolist()]
    if len(text) == 1:
        for j, index in enumerate(text[0].tolist()):
            if index != NO_TEXT:
                reading = readings.get(j)
                value, stays = _value(reading, cells.texts[index]) if reading else (nan, True)
                numbers[0, j] = value
                if not stays:
                    text[0, j] = NO_TEXT
        return cells._replace(numbers=numbers, text=text)
    of_column, of_row = np.nonzero(text.T != NO_TEXT)
    given = zip(of_column.tolist(), text[of_row, of_column].tolist(), strict=True)
    values, kept = list[float](), list[int]()
    last, reading, read_texts = -1, None, dict[int, tuple[float, bool]]()
    for j, index in given:
        if j != last:
            last, reading, read_texts = j, readings.get(j), {}
        if index not in read_texts:
            read_texts[index] = _value(reading, cells.texts[index]) if reading else (nan, True)
        value, stays = read_texts[index]
        values.append(value)
        kept.append(index if stays else NO_TEXT)
    numbers[of_row, of_column], text[of_row, of_column] = values, kept
    return cells._replace(numbers=numbers, text=text)


def _number(reading: ColumnReading, x: float) -> float:
    return log1p(len(text_of(x))) if reading.kind == "text" else reading.number_of(x)


def _value(reading: ColumnReading, text: str) -> tuple[float, bool]:
    """Return a text's number, NaN without one, and whether it stays a text."""
    if reading.is_missing(text) or reading.kind == "identifier":
        return nan, False
    if reading.kind == "text":
        return log1p(len(text)), False
    number = reading.number(text)
    return number, isnan(number)


def within_texts(reading: ColumnReading, cells: Cells, j: int | None) -> Float64Array:
    """Return the columns (n, words + units) that are computed from parts of texts.

    They are whether the text has each word, 1 or 0, and the number before each unit, NaN if there
    is none; all NaN where there is no text.

    reading: the words and units.
    cells: as they came.
    j: index of the column in the cells; None if they lack it.
    """
    width = len(reading.words) + len(reading.units)
    if j is None:
        return np.full((len(cells.numbers), width), nan)
    none, indices = [nan] * width, cells.text[:, j].tolist()
    columns = {
        index: none if index == NO_TEXT else _within_text(reading, cells.texts[index])
        for index in dict.fromkeys(indices)
    }
    return np.array([columns[index] for index in indices]).reshape(-1, width)


def _within_text(reading: ColumnReading, text: str) -> list[float]:
    present = set(words_of(text)) if reading.words else ()
    numbers = _numbers_in(text) if reading.units else {}
    words = [float(word in present) for word in reading.words]
    return words + [numbers.get(unit, nan) for unit in reading.units]


def _numbers_in(text: str) -> dict[str, float]:
    """Return the numbers within a text, by their units and by their places."""
    return {**amounts(text), **placed_numbers(text)}


def words(
    columns: Sequence[ReadColumn], cells: Cells, places: Sequence[int | None]
) -> Float64Array:
    """Return codes of words (n, MOST_CODES), all below 0, padded with NaN.

    columns: those whose words are learned.
    cells: as they came.
    places: index of each column in the cells; None if they lack it.
    """
    row_codes: list[list[float]] = [[] for _ in range(len(cells.numbers))]
    for column, j in zip(columns, places, strict=True):
        if j is None:
            continue
        with_room = [i for i, codes in enumerate(row_codes) if len(codes) < MOST_CODES]
        for i, codes in _codes(column, cells, j, with_room):
            row_codes[i] += codes[: MOST_CODES - len(row_codes[i])]
    padded = np.full((len(row_codes), MOST_CODES), nan)
    counts = np.array([len(codes) for codes in row_codes], np.int64)
    padded[np.arange(MOST_CODES) < counts[:, None]] = list(chain.from_iterable(row_codes))
    return padded


def _codes(
    column: ReadColumn, cells: Cells, j: int, rows: Sequence[int]
) -> Iterator[tuple[int, list[float]]]:
    """Yield each of the rows that has a value in the cells' column j, with its codes of words."""
    key, reading = column_key(column.name), column.reading
    numbers, indices = cells.numbers[:, j].tolist(), cells.text[:, j].tolist()
    for i in rows:
        if indices[i] != NO_TEXT:
            text = cells.texts[indices[i]]
            if not reading.is_missing(text):
                yield i, codes_of_words(key, text)
        elif numbers[i] == numbers[i]:
            yield i, codes_of_number(key, numbers[i])


def readings(
    names: Sequence[str],
    rows: Sequence[Cells],
    fixed: Mapping[str, Kind],
    like_times: Collection[str],
) -> list[ColumnReading]:
    """Return how to read columns, judged by their values.

    names: of the columns; rows without names have them in this order.
    rows: with the values.
    fixed: name -> kind that is given.
    like_times: the names that sound like times.
    """
    numeric, textual = set[str](), {*fixed, *like_times}
    for given, alike in groupby(rows, attrgetter("names")):
        given = names if given is None else given
        with_number, with_text, with_code = np.zeros((3, len(given)), np.bool_)
        for cells in alike:
            with_number |= ~np.isnan(cells.numbers).all(axis=0)
            with_text |= (cells.text != NO_TEXT).any(axis=0)
            with_code |= (cells.numbers >= LEAST_CODE).any(axis=0)
        numeric |= {given[j] for j in np.flatnonzero(with_number).tolist()}
        textual |= {given[j] for j in np.flatnonzero(with_text | with_code).tolist()}
    # Columns of short numbers alone, which may be very many, need no look at their values.
    values: dict[str, list[Value]] = {name: [] for name in names if name in textual}
    for cells in rows if values else ():
        for j, name in enumerate(names if cells.names is None else cells.names):
            if name in values:
                values[name] += values_in(cells, j)
    judged = list[ColumnReading]()
    for name in names:
        if name in fixed:
            judged.append(given_kind(fixed[name], values[name]))
        elif name in values:
            judged.append(judge(name, values[name]))
        else:
            judged.append(NUMBER if name in numeric else EMPTY)
    return judged


def values_in(cells: Cells, j: int) -> Iterator[Value]:
    """Yield the values in the cells' column j."""
    for number, index in zip(cells.numbers[:, j].tolist(), cells.text[:, j].tolist(), strict=True):
        if index != NO_TEXT:
            yield cells.texts[index]
        else:
            yield None if isnan(number) else number
