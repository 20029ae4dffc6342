"""The form of a stream's rows: arrays of one length, a table, or sparse rows by name."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.bends import bend_of_column
from wolfstream.solver.prepare.cells import Cells
from wolfstream.solver.prepare.columns import Layout, layout_of
from wolfstream.solver.prepare.judging import Kind
from wolfstream.solver.prepare.named_rows import (
    NamedRows,
    Rows,
    cells,
    n_entries,
    n_rows,
    named_columns,
    rows_between,
    with_own_words,
    without_zeros,
)
from wolfstream.solver.prepare.repeats import codes_of_numbers, columns_of_codes
from wolfstream.solver.prepare.schema import (
    MOST_LATE,
    SETTLING,
    FirstRows,
    Misfit,
    Names,
    Schema,
    layout,
    settled_numbers,
)
from wolfstream.solver.prepare.settling import schema_after_first, table_after
from wolfstream.solver.prepare.table_rows import TableRows, check, encode, encoded_words
from wolfstream.solver.prepare.words import MOST_CODES

# A missing number becomes the mean of its column; "indicator" adds a column that is 1 then.
Missing = Literal["mean", "indicator"]
# Texts are slots for all heads; with "crossed", heads that take votes also get codes to cross.
Texts = Literal["crossed", "slots"]
# Codes are numbers for all heads; with "crossed", heads that take votes also get them as codes.
Codes = Literal["crossed", "numbers"]
_ARRAYS, _NAMED = "arrays of numbers", "objects of named numbers"
# The most numbers that the rows of a request may become if they name few columns of a table.
MOST_NUMBERS = 1 << 25


class PreparationParameters(NamedTuple):
    """The settings of preparation; `service.spec.prepare` describes them."""

    missing: Missing = "mean"
    named: Literal["table", "sparse"] = "table"  # what rows by name are
    timestamps: tuple[str, ...] = ()  # names of columns of times
    texts: Texts = "crossed"
    codes: Codes = "crossed"
    columns: tuple[tuple[str, Kind], ...] = ()  # given kinds of columns
    names: Names = "learned"

    @property
    def fixed(self) -> tuple[tuple[str, Kind], ...]:
        """The given kinds of columns, as pairs of name and kind."""
        times: dict[str, Kind] = dict.fromkeys(self.timestamps, "time")
        return tuple({**times, **dict(self.columns)}.items())


class AnotherKind(ValueError):
    """Rows have another form than the first sample; `must` says which form they must have."""

    def __init__(self, message: str, must: str) -> None:
        super().__init__(message)
        self.must = must


class RowForm(NamedTuple):
    """The form of a model's rows after some samples."""

    prepare: PreparationParameters | None  # None if rows are learned without preparation
    width: int | None = None  # numbers in a row, if rows are arrays
    schema: Schema | None = None  # if rows are a table
    sparse: bool = False  # whether they are sparse rows by name
    samples: int = 0  # number of arrays so far, while they decide which columns are codes
    coded: tuple[int, ...] = ()  # columns of encoded rows whose numbers are codes
    bent: tuple[tuple[int, float], ...] = ()  # columns that are transformed, with their bends

    @property
    def begun(self) -> bool:
        """Whether there was any row."""
        return self.sparse or self.schema is not None or self.width is not None

    @property
    def settled(self) -> bool:
        """Whether no further row changes what heads see of rows."""
        if self.schema is not None:
            return self.schema.settled
        return self.begun and (self.sparse or not self._codes or self.samples >= SETTLING)

    @property
    def features(self) -> int | None:
        """Number of columns of arrays or a table; None before the first row, and of sparse rows."""
        return self.width if self.schema is None else len(self.schema.columns)

    @property
    def layout(self) -> Layout | None:
        """The layout of `encoded` rows; None before the first row, and of sparse rows."""
        indicators = self.prepare is not None and self.prepare.missing == "indicator"
        if self.schema is not None:
            table_layout = layout(self.schema, indicators=indicators)
            bends = ((table_layout.numbers.index(j), bend) for j, bend in self.bent)
            return table_layout._replace(bends=tuple(bends))
        if self.width is None:
            return None
        return layout_of(["number"] * self.width, indicators=indicators)

    @property
    def prepared_width(self) -> int | None:
        """Number of prepared columns; None before the first row, and of sparse rows."""
        row_layout = self.layout
        return None if row_layout is None else row_layout.width

    @property
    def crossed_columns(self) -> tuple[int, ...]:
        """The columns of encoded rows whose texts are crossed, then those of codes."""
        crossed = self.prepare is not None and self.prepare.texts == "crossed"
        if not crossed or self.schema is None:
            return self.coded
        return (*self.schema.columns.layout.categories, *self.coded)

    @property
    def categorical(self) -> tuple[int, ...]:
        """The columns of encoded rows that are codes of texts."""
        return () if self.schema is None else self.schema.columns.layout.categories

    @property
    def wordy(self) -> bool:
        """Whether words of rows are learned, which are crossed as texts are."""
        crossed = self.prepare is not None and self.prepare.texts == "crossed"
        return crossed and self.schema is not None and self.schema.wordy

    @property
    def crossed_width(self) -> int:
        """Number of columns of `crossed`."""
        return len(self.crossed_columns) + (MOST_CODES if self.wordy else 0)

    @property
    def _codes(self) -> bool:
        """Whether numbers that are codes are crossed, too."""
        return self.prepare is not None and self.prepare.codes == "crossed"

    def after(self, rows: Rows) -> "RowForm":
        """Return the form after more rows to learn; it does not depend on how a stream is cut.

        Raises Misfit and AnotherKind for rows that do not fit.
        """
        if isinstance(rows, np.ndarray) and self.schema is None:
            self._check_arrays(rows)
            if self.settled:
                return self
            samples = min(self.samples + len(rows), SETTLING) if self._codes else 0
            return self._replace(width=rows.shape[1], samples=samples)
        if self.sparse or self._begins_sparse(rows):
            self._check_sparse(rows)
            return self._replace(sparse=True)
        form = self
        if self.schema is None:
            form = self._replace(width=None, schema=self._first_schema(rows))
        return form._extended(rows)

    def with_first(self, first: Sequence[Rows]) -> "RowForm":
        """Return a settled form that knows which columns are codes, and which to transform.

        first: all rows until the form settled.
        """
        if self.prepare is None or self.sparse or self.layout is None:
            return self
        X = np.concatenate([self.encoded(rows) for rows in first])
        numbers = np.array(self._amounts(), np.int64)
        coded, bent = list(columns_of_codes(X[:, numbers])) if self._codes else [], []
        if self.schema is not None:
            bends = ((j, bend_of_column(X[~np.isnan(X[:, j]), j])) for j in numbers.tolist())
            bent = [(j, bend) for j, bend in bends if bend]
        return self._replace(coded=tuple(numbers[coded].tolist()), bent=tuple(bent))

    def settled_now(self) -> "RowForm":
        """Return the form, settled without further rows."""
        if self.settled:
            return self
        if self.schema is None:
            return self._replace(samples=SETTLING)
        return self._replace(schema=self.schema._replace(samples=SETTLING))

    def without_head(self) -> "RowForm":
        """Return the form without the first rows, which predictions do not need."""
        if self.schema is None or not self.schema.head.rows:
            return self
        return self._replace(schema=self.schema._replace(head=FirstRows()))

    def taken(self, rows: Rows | TableRows) -> tuple["RowForm", TableRows]:
        """Return the form after more rows of a settled table, and the rows by it. Raises Misfit."""
        table = table_after(self.table(rows))
        form = self if table.schema is self.schema else self._replace(schema=table.schema)
        return form, table

    def checked(self, rows: Rows | TableRows) -> Rows | TableRows:
        """Return rows to predict, as `TableRows` if the form is a table.

        Raises Misfit and AnotherKind for rows that do not fit.
        """
        if isinstance(rows, TableRows) or not self.begun:
            return rows
        self.check_room(rows)
        if self.schema is not None:
            table = self.table(rows)
            check(table)
            return table
        if self.sparse:
            self._check_sparse(rows)
        else:
            self._check_arrays(_unnamed(rows))
        return rows

    def check_room(self, rows: Rows) -> None:
        """Raise Misfit for rows of a request that become many more numbers than they have.

        A row by name becomes a number for each column of a table, even if it names few.
        """
        columns = 0 if self.schema is None else len(self.schema.columns)
        if n_rows(rows) * columns > max(MOST_NUMBERS, n_entries(rows)):
            detail = (
                f"is of {n_rows(rows)} rows for a table of {columns} columns, which takes "
                f"{MOST_NUMBERS // columns} at a time: send smaller batches"
            )
            raise Misfit(0, None, detail)

    def encoded(self, rows: Rows | TableRows) -> Float64Array:
        """Return rows as numbers and codes (n, columns of the layout), NaN where one is missing."""
        if self.schema is not None:
            return encode(self.table(rows))
        assert not isinstance(rows, TableRows)
        return _unnamed(rows)

    def words(self, rows: Rows | TableRows) -> Float64Array | None:
        """Return codes of the words of rows, (n, MOST_CODES); None if words are not learned."""
        return encoded_words(self.table(rows)) if self.wordy else None

    def crossed(self, encoded: Float64Array, words: Float64Array | None) -> Float64Array | None:
        """Return the codes (n, crossed_width) that learners cross; None if there are none.

        They are those of texts, of numbers, and of words, in this order.

        encoded: (n, columns) as `encoded` returns them.
        words: (n, MOST_CODES) as `words` returns them.
        """
        columns = list(self.crossed_columns)
        if not columns:
            return words
        texts = encoded[:, columns[: len(columns) - len(self.coded)]]
        parts = [texts, codes_of_numbers(encoded[:, list(self.coded)])]
        return np.concatenate(parts if words is None else [*parts, words], axis=1)

    def table(self, rows: Rows | TableRows) -> TableRows:
        """Return rows as those of the table. Raises Misfit for unknown names if it refuses them."""
        if isinstance(rows, TableRows):
            return rows
        assert self.schema is not None
        return TableRows(self.schema, self.cells(rows))

    def cells(self, rows: Rows) -> Cells:
        """Return rows as cells, which leave out names that the table does not learn.

        Raises Misfit for unknown names if these are refused.
        """
        if self.schema is None or not isinstance(rows, NamedRows):
            return cells(rows)
        new = self.schema.unknown(rows.names)
        if not new:
            return cells(rows)
        if not self.schema.open:
            return _refused(self.schema, rows)
        taken = frozenset(new[: MOST_LATE - len(self.schema.late)])
        return cells(_without_names(rows, frozenset(new) - taken))

    def _amounts(self) -> tuple[int, ...]:
        """Return the numeric columns of encoded rows that are not derived from times or texts."""
        assert self.layout is not None
        moments = set[int]()
        at = 0
        for column in () if self.schema is None else self.schema.columns:
            if column.moment or column.reading.kind == "text":
                moments |= set(range(at, at + column.n_numbers))
            elif column.used:
                moments |= set(range(at + column.numeric, at + column.n_numbers))
            at += column.n_numbers + (column.used and column.slots > 0)
        if self.schema is not None:  # the differences of times come last
            moments |= set(range(at, at + len(self.schema.columns.paired_moments)))
        return tuple(j for j in self.layout.numbers if j not in moments)

    def _extended(self, rows: Rows) -> "RowForm":
        """Return the form of a table after more rows, one by one while it settles."""
        schema, i, n = self.schema, 0, n_rows(rows)
        assert schema is not None
        while i < n:
            stop = n if schema.settled else i + 1
            part = rows_between(rows, i, stop)
            if schema.settled:
                table = self._replace(schema=schema).cells(part)
            else:  # with all names of the row, of which each may become a column
                table = cells(with_own_words(part))
            try:
                wider = schema_after_first(schema, table)
            except Misfit as misfit:
                raise misfit.moved(i) from None
            if wider is None:
                return RowForm(self.prepare, sparse=True).after(rows_between(rows, i, n))
            schema, i = wider, stop
        return self if schema is self.schema else self._replace(schema=schema)

    def _begins_sparse(self, rows: Rows) -> bool:
        """Return whether the first rows are sparse, whatever their values are."""
        if self.begun or isinstance(rows, np.ndarray) or rows.names is None:
            return False
        if self.prepare is None:
            return isinstance(rows, NamedRows)
        return self.prepare.named == "sparse"

    def _first_schema(self, rows: Rows) -> Schema:
        """Return the schema before the first rows, or before the first table after arrays."""
        if self.prepare is not None and not self.begun:
            return Schema(fixed=self.prepare.fixed, names_are=self.prepare.names)
        if not isinstance(rows, Cells):
            raise _another_kind(_ARRAYS)
        self._check_arrays(rows.numbers)
        strict = self.prepare is None
        return _numbers_like(rows)._replace(named=rows.names is not None, strict=strict)

    def _check_arrays(self, rows: Float64Array) -> None:
        if self.sparse:
            raise _another_kind(_NAMED)
        if self.width is not None and rows.shape[1] != self.width:
            detail = f"has {rows.shape[1]} numbers, the model's rows have {self.width}"
            raise Misfit(0, None, detail)

    def _check_sparse(self, rows: Rows) -> None:
        if isinstance(rows, np.ndarray) or rows.names is None:
            raise _another_kind(_NAMED)
        if len(rows.texts):
            detail = "must have numbers and no text: the model's rows are sparse"
            raise AnotherKind(f"rows {detail}", detail)


def _unnamed(rows: Rows) -> Float64Array:
    """Return rows as an array, for a model of arrays, which ignores the names of a table."""
    if isinstance(rows, NamedRows):
        raise _another_kind(_ARRAYS)
    if isinstance(rows, Cells):
        return encode(TableRows(_numbers_like(rows), rows))
    return rows


def _numbers_like(rows: Cells) -> Schema:
    names = rows.names or tuple(map(str, range(rows.numbers.shape[1])))
    return settled_numbers(names, strict=False)


def sparse_rows(rows: Rows) -> NamedRows:
    """Return rows for a model of sparse rows, without zeros."""
    if isinstance(rows, Cells):
        return named_columns(list(rows.names or ()), np.nan_to_num(rows.numbers))
    assert isinstance(rows, NamedRows)
    return without_zeros(rows)


def _refused(schema: Schema, rows: NamedRows) -> Cells:
    """Raise Misfit for the first row with an unknown name; else return the rows as cells.

    The check comes before memory for all names of a request is reserved.
    """
    known = schema.columns.name_set
    unknown = [k for k, name in enumerate(rows.names) if name not in known]
    has = np.isin(rows.place, unknown)
    if has.any():
        row = int(np.repeat(np.arange(n_rows(rows)), rows.lengths)[np.argmax(has)])
        try:
            TableRows(schema, cells(rows.part(row, row + 1)))
        except Misfit as misfit:
            raise misfit.moved(row) from None
    return cells(rows)


def _without_names(rows: NamedRows, names: frozenset[str]) -> NamedRows:
    """Return rows without some names and their values."""
    kept_names = np.array([name not in names for name in rows.names], np.bool_)
    if kept_names.all():
        return rows
    kept = kept_names[rows.place]
    row = np.repeat(np.arange(n_rows(rows)), rows.lengths)[kept]
    return rows._replace(
        names=[name for name in rows.names if name not in names],
        lengths=np.bincount(row, minlength=n_rows(rows)),
        place=(np.cumsum(kept_names) - 1)[rows.place[kept]],
        value=rows.value[kept],
        text=rows.text[kept] if len(rows.texts) else rows.text,
    )


def _another_kind(takes: str) -> AnotherKind:
    given = _NAMED if takes == _ARRAYS else _ARRAYS
    detail = f"the model's first sample decided that its rows are {takes}, these are {given}"
    return AnotherKind(detail, f"must be {takes}")
