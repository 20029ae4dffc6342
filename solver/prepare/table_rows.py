"""Encodes the rows of a table as the numbers, codes and words that are learned.

What a settled table has no column for is learned by its words (`schema`): texts that a column of
numbers cannot read, and other values in a column that was of categories.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from math import nan

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import (
    MOMENT_COLUMNS,
    NO_TEXT,
    Cells,
    code_of,
    moment_columns,
    text_of,
)
from wolfstream.solver.prepare.numerals import plain_number
from wolfstream.solver.prepare.read_cells import read, within_texts, words
from wolfstream.solver.prepare.schema import (
    Column,
    Misfit,
    Schema,
    in_order,
    is_sentence,
    late_columns,
    places_of,
)
from wolfstream.solver.prepare.words import MOST_CODES


class TableRows:
    """Rows of a table, whose cells are read at most once.

    schema: of the table.
    cells: the rows as they came.
    columns: those of the schema, then those that came late.
    places: index of each column in the cells; None if they lack it.
    changes: index of a column -> the row from which on it is no longer of categories.

    Raises Misfit for unknown names, if the schema refuses them.
    """

    def __init__(self, schema: Schema, cells: Cells) -> None:
        self.schema, self.cells = schema, cells
        self.columns: Sequence[Column] = schema.columns
        self.places = places_of(schema, cells)
        if schema.late:
            index = {name: j for j, name in enumerate(cells.names or ())}
            self.columns = [*schema.columns, *late_columns(schema)]
            self.places = [*self.places, *(index.get(name) for name in schema.late)]
        self.changes: Mapping[int, int] = {}
        self._read: Cells | None = None  # None before the first use

    def by(self, schema: Schema, changes: Mapping[int, int] | None = None) -> "TableRows":
        """Return the rows by the schema after them; changes: those of the class."""
        if schema is self.schema and not changes:
            return self
        table = TableRows(schema, self.cells)
        table.changes = changes or {}
        if schema.columns.read == self.schema.columns.read and schema.late == self.schema.late:
            table._read = self._read
        return table

    @property
    def plain(self) -> bool:
        """Whether the rows have only numbers that are learned as they come."""
        return not self.cells.texts and self.schema.columns.plain

    @property
    def read(self) -> Cells:
        """The cells, with values read by the kinds of the columns."""
        if self._read is None:
            self._read = self.cells if self.plain else read(self.columns, self.cells, self.places)
        return self._read

    @cached_property
    def with_texts(self) -> list[int]:
        """Indices of columns that still have texts after reading."""
        if not self.cells.texts:
            return []
        has_text = (self.read.text != NO_TEXT).any(axis=0).tolist()
        return [k for k, j in enumerate(self.places) if j is not None and has_text[j]]

    @cached_property
    def spilled(self) -> Cells | None:
        """The values that a settled table has no column for, as cells; None if there are none."""
        return _spilled(self)


def check(table: TableRows) -> None:
    """Raise Misfit for a text or missing value in a table that is not prepared."""
    schema, cells = table.schema, table.cells
    if not schema.strict:
        return
    for column, j in zip(schema.columns, table.places, strict=True):
        if j is None:
            if len(cells.numbers):
                raise Misfit(0, column.name, "is missing, and the model has no prepare to fill it")
            continue
        texts = cells.text[:, j] != NO_TEXT
        if texts.any():
            raise Misfit(int(np.argmax(texts)), column.name, "must be a number, not text")
        missing = np.isnan(cells.numbers[:, j])
        if missing.any():
            row = int(np.argmax(missing))
            raise Misfit(row, column.name, "is missing, and the model has no prepare")


def encode(table: TableRows) -> Float64Array:
    """Return rows as numbers and codes (n, columns of the layout), NaN where one is missing."""
    columns = table.schema.columns
    places = table.places[: len(columns)]
    if table.plain:
        return in_order(table.cells.numbers, places, np.nan)
    layout, encoding = columns.layout, columns.encoding
    numbers = in_order(table.read.numbers, places, np.nan)
    X = np.empty((len(numbers), len(layout.numbers) + len(layout.categories)))
    X[:, encoding.amounts_at] = numbers[:, encoding.amounts]
    for k, at in encoding.moments:
        X[:, at : at + MOMENT_COLUMNS] = moment_columns(numbers[:, k], columns[k].reading.zone)
    for k, at in encoding.within:
        reading = columns[k].reading
        X[:, at : at + columns[k].within] = within_texts(reading, table.cells, places[k])
    for k, at in encoding.texts:
        X[:, at] = _codes(columns[k], table.read, places[k])
    seconds = {columns[k].name: at + MOMENT_COLUMNS - 1 for k, at in encoding.moments}
    for k, (first, second) in enumerate(reversed(columns.paired_moments), 1):
        X[:, -k] = X[:, seconds[first.name]] - X[:, seconds[second.name]]
    return X


def encoded_words(table: TableRows) -> Float64Array | None:
    """Return codes of the rows' words (n, MOST_CODES) as in `words`; None if none are learned.

    The words are those of columns of texts, of names that came late, and of values that a settled
    table has no column for.
    """
    schema = table.schema
    if not schema.wordy:
        return None
    first_late = len(schema.columns)
    wordy = [k for k, c in enumerate(table.columns) if c.reading.wordy or k >= first_late]
    if schema.spilled and table.spilled is not None:
        others = sorted({*schema.columns.only_numbers, *schema.columns.changed})
        spilled = _words_of(table, others, table.spilled)
        return _joined(_words_of(table, wordy, table.cells), spilled)
    return _words_of(table, wordy, table.cells)


def _words_of(table: TableRows, which: Sequence[int], cells: Cells) -> Float64Array:
    return words([table.columns[k] for k in which], cells, [table.places[k] for k in which])


def _joined(first: Float64Array, second: Float64Array) -> Float64Array:
    """Return the first MOST_CODES codes of both."""
    both = np.concatenate([first, second], axis=1)
    order = np.argsort(np.isnan(both), axis=1, kind="stable")[:, :MOST_CODES]
    return np.take_along_axis(both, order, axis=1)


def _spilled(table: TableRows) -> Cells | None:
    """Compute `TableRows.spilled`.

    These are texts that a column of numbers cannot read, and values that are no categories in a
    column that was of categories.
    """
    cells, columns, places = table.cells, table.schema.columns, table.places
    unread = set(columns.only_numbers).intersection(table.with_texts)
    if not unread and not any(places[k] is not None for k in columns.changed):
        return None
    values = table.read
    text = np.full(cells.text.shape, NO_TEXT, cells.text.dtype)
    numbers = np.full(cells.numbers.shape, np.nan)
    for k in unread:
        if (j := places[k]) is not None:
            text[:, j] = values.text[:, j]
    for k in columns.changed:
        if (j := places[k]) is not None:
            others = uncategorised(columns[k], values, j)
            others[: table.changes.get(k, 0)] = False
            text[:, j] = np.where(others, values.text[:, j], NO_TEXT)
            numbers[:, j] = np.where(others, values.numbers[:, j], np.nan)
    if not (text != NO_TEXT).any() and np.isnan(numbers).all():
        return None
    return cells._replace(numbers=numbers, text=text)


def uncategorised(column: Column, cells: Cells, j: int) -> NDArray[np.bool_]:
    """Return which values (n,) of a column of categories are none.

    These are numbers without codes of their own, and sentences.

    column: of categories.
    cells: after reading.
    j: index of the column in the cells.
    """
    numbers, texts = cells.numbers[:, j], cells.text[:, j]
    categories = [float(text) for text in column.texts if plain_number(text) is not None]
    others = ~np.isnan(numbers) & ~np.isin(numbers, categories)
    for index in np.unique(texts).tolist():
        if index != NO_TEXT and is_sentence(column, cells.texts[index]):
            others |= texts == index
    return others


def _codes(column: Column, cells: Cells, j: int | None) -> list[float]:
    """Return the codes (n,) of the texts in column j of read cells, NaN where one is missing.

    A number in a column of texts alone is one of them.
    """
    if j is None:
        return [nan] * len(cells.text)
    own_codes, indices = _own_codes(column.texts), cells.text[:, j].tolist()
    code = {
        index: _code(own_codes, column.reading.category(cells.texts[index]))
        for index in dict.fromkeys(indices)
        if index != NO_TEXT
    }
    codes = [code.get(index, nan) for index in indices]
    if not column.number and not column.moment:
        for i, number in enumerate(cells.numbers[:, j].tolist()):
            if number == number:
                codes[i] = _code(own_codes, text_of(number))
    return codes


def _code(own_codes: Mapping[str, float], text: str) -> float:
    code = own_codes.get(text)
    return code_of(text) if code is None else code


@lru_cache(1024)
def _own_codes(texts: tuple[str, ...]) -> Mapping[str, float]:
    return {text: float(code) for code, text in enumerate(texts)}
