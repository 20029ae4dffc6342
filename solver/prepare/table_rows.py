"""Rows of a table, read once, as the numbers, codes and words that are learned.

What a settled table has no place for is learned by its words (`schema`): texts that a column of
numbers cannot read, and values of a column of categories that has become another one.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

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
from wolfstream.solver.prepare.kinds.numerals import plain_number
from wolfstream.solver.prepare.kinds.words import MOST_CODES
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


class TableRows:
    """Rows of a table, and what its columns make of them: whoever asks, each cell is read once.

    schema: of the columns. cells: the rows as they came. columns: of the schema, those that came
    late last. places: where the cells have these; None where they lack one. changes: where rows
    have made a column of categories another one, the row from which on it is that.
    """

    def __init__(self, schema: Schema, cells: Cells) -> None:
        """Raise Misfit for names that the schema lacks."""
        self.schema, self.cells = schema, cells
        self.columns: Sequence[Column] = schema.columns
        self.places = places_of(schema, cells)
        if schema.late:
            place = {name: j for j, name in enumerate(cells.names or ())}
            self.columns = [*schema.columns, *late_columns(schema)]
            self.places = [*self.places, *(place.get(name) for name in schema.late)]
        self.changes: Mapping[int, int] = {}
        self._read: Cells | None = None  # once it was asked for

    def by(self, schema: Schema, changes: Mapping[int, int] | None = None) -> "TableRows":
        """Return the rows for the schema that they have made. changes: see the class."""
        if schema is self.schema and not changes:
            return self
        table = TableRows(schema, self.cells)
        table.changes = changes or {}
        if schema.columns.read == self.schema.columns.read and schema.late == self.schema.late:
            table._read = self._read
        return table

    @property
    def plain(self) -> bool:
        """Whether they are numbers, learned as they come."""
        return not self.cells.texts and self.schema.columns.plain

    @property
    def read(self) -> Cells:
        """Cells whose numbers and texts are what the columns' kinds make of them."""
        if self._read is None:
            self._read = self.cells if self.plain else read(self.columns, self.cells, self.places)
        return self._read

    @cached_property
    def with_texts(self) -> list[int]:
        """Those of the columns in which texts are left that were not read."""
        if not self.cells.texts:
            return []
        left = (self.read.text != NO_TEXT).any(axis=0).tolist()
        return [k for k, j in enumerate(self.places) if j is not None and left[j]]

    @cached_property
    def spilled(self) -> Cells | None:
        """Cells with nothing but values that a settled table has no place for; None if none."""
        return _spilled(self)


def check(table: TableRows) -> None:
    """Raise Misfit for a value that a table without preparation cannot take."""
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
    """Return rows that fit as numbers and codes, NaN where missing: (n, columns of the layout)."""
    columns = table.schema.columns
    places = table.places[: len(columns)]
    if table.plain:
        return in_order(table.cells.numbers, places, np.nan)
    n, layout = len(table.cells.numbers), columns.layout
    X, codes = np.empty((n, len(layout.numbers) + len(layout.categories))), _text_codes(table.read)
    used = [(c, j) for c, j in zip(columns, places, strict=True) if c.used]
    seconds = dict[str, Float64Array]()
    for (column, j), at in zip(used, columns.beginnings, strict=True):
        own = X[:, at : at + column.n_numbers + (column.slots > 0)]
        if j is None:
            own.fill(np.nan)
        else:
            _encode_column(column, table, j, codes, own)
        if column.moment:
            seconds[column.name] = own[:, MOMENT_COLUMNS - 1]
    for k, (first, second) in enumerate(reversed(columns.paired_moments), 1):
        X[:, -k] = seconds[first.name] - seconds[second.name]
    return X


def encoded_words(table: TableRows) -> Float64Array | None:
    """Return the codes of the rows' words (n, MOST_CODES), as `words` has them; None without any.

    They are those of columns of texts, of names that came late, and of texts that a settled table
    has no place for.
    """
    schema = table.schema
    if not schema.wordy:
        return None
    first_late = len(schema.columns)
    wordy = [k for k, c in enumerate(table.columns) if c.reading.wordy or k >= first_late]
    if schema.spilled and table.spilled is not None:
        others = sorted({*schema.columns.only_numbers, *schema.columns.changed})
        rest = _words_of(table, others, table.spilled)
        return _beside(_words_of(table, wordy, table.cells), rest)
    return _words_of(table, wordy, table.cells)


def _words_of(table: TableRows, which: Sequence[int], cells: Cells) -> Float64Array:
    return words([table.columns[k] for k in which], cells, [table.places[k] for k in which])


def _beside(first: Float64Array, second: Float64Array) -> Float64Array:
    """Return the codes of both, as far as there is room."""
    both = np.concatenate([first, second], axis=1)
    order = np.argsort(np.isnan(both), axis=1, kind="stable")[:, :MOST_CODES]
    return np.take_along_axis(both, order, axis=1)


def _spilled(table: TableRows) -> Cells | None:
    """See `TableRows.spilled`.

    These are texts that a column of numbers cannot read, and values that are no categories in a
    column of these which has become another one.
    """
    cells, columns, places = table.cells, table.schema.columns, table.places
    of_numbers = set(columns.only_numbers).intersection(table.with_texts)
    if not of_numbers and not any(places[k] is not None for k in columns.changed):
        return None
    left = table.read
    text = np.full(cells.text.shape, NO_TEXT, cells.text.dtype)
    numbers = np.full(cells.numbers.shape, np.nan)
    for k in of_numbers:
        if (j := places[k]) is not None:
            text[:, j] = left.text[:, j]
    for k in columns.changed:
        if (j := places[k]) is not None:
            others = uncategorised(columns[k], left, j)
            others[: table.changes.get(k, 0)] = False
            text[:, j] = np.where(others, left.text[:, j], NO_TEXT)
            numbers[:, j] = np.where(others, left.numbers[:, j], np.nan)
    if not (text != NO_TEXT).any() and np.isnan(numbers).all():
        return None
    return cells._replace(numbers=numbers, text=text)


def uncategorised(column: Column, left: Cells, j: int) -> NDArray[np.bool_]:
    """Return which values (n,) in the cells' column j are none that a column of categories expects.

    These are numbers without codes of their own, and texts that are sentences beside its
    categories. left: cells that were read.
    """
    numbers, texts = left.numbers[:, j], left.text[:, j]
    categories = [float(text) for text in column.texts if plain_number(text) is not None]
    others = ~np.isnan(numbers) & ~np.isin(numbers, categories)
    for place in np.unique(texts).tolist():
        if place != NO_TEXT and is_sentence(column, left.texts[place]):
            others |= texts == place
    return others


class _TextCodes(NamedTuple):
    """Codes of texts that have none of their own.

    codes: of each text, then NaN for no text. place_of: the texts' places in there.
    """

    codes: Float64Array
    place_of: Mapping[str, int]


def _text_codes(cells: Cells) -> _TextCodes:
    """Return the codes of the texts that are left in cells that were read."""
    codes = np.full(len(cells.texts) + 1, np.nan)
    if cells.texts:
        for place in set(cells.text.ravel().tolist()):
            if place != NO_TEXT:
                codes[place] = code_of(cells.texts[place])
    return _TextCodes(codes, {text: place for place, text in enumerate(cells.texts)})


def _encode_column(
    column: Column, table: TableRows, j: int, codes: _TextCodes, X: Float64Array
) -> None:
    """Write the cells' column j, which is learned, as numbers and codes to X (n, its columns)."""
    numbers = table.read.numbers[:, j]
    if column.moment:
        X[:, :MOMENT_COLUMNS] = moment_columns(numbers)
    elif column.numeric:
        X[:, 0] = numbers
    if column.within:
        X[:, column.numeric : column.n_numbers] = within_texts(column.reading, table.cells, j)
    if column.slots:
        X[:, -1] = _codes(column, table.read, j, codes)


def _codes(column: Column, cells: Cells, j: int, text_codes: _TextCodes) -> Float64Array:
    """Return the codes (n,) of a column's texts in the cells' column j; NaN where one is missing.

    cells: that were read.
    """
    codes, place_of = text_codes
    own_codes = _own_codes(column.texts)
    here = own_codes.keys() & place_of.keys()
    places = [place_of[text] for text in here]
    shared = codes[places]
    codes[places] = [own_codes[text] for text in here]
    column_codes = codes[cells.text[:, j]]
    codes[places] = shared
    if not column.number and not column.moment:
        numbers = cells.numbers[:, j]
        for i in np.flatnonzero(~np.isnan(numbers)):
            text = text_of(float(numbers[i]))
            column_codes[i] = own_codes.get(text, code_of(text))
    return column_codes


@lru_cache(1024)
def _own_codes(texts: tuple[str, ...]) -> Mapping[str, float]:
    return {text: float(code) for code, text in enumerate(texts)}
