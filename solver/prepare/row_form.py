"""What the rows of a stream are: arrays of a length, a table, or sparse rows by name."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.bends import bend_of_column
from wolfstream.solver.prepare.cells import Cells
from wolfstream.solver.prepare.columns import Layout, layout_of
from wolfstream.solver.prepare.kinds.judging import Kind
from wolfstream.solver.prepare.kinds.words import MOST_CODES
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
    Head,
    Misfit,
    Names,
    Schema,
    layout,
    settled_numbers,
)
from wolfstream.solver.prepare.settling import extended, taken
from wolfstream.solver.prepare.table_rows import TableRows, check, encode, encoded_words

# Missing numbers become the mean of their feature; or that, and one more feature that says so.
Missing = Literal["mean", "indicator"]
# Texts are slots for all heads; those that listen also get their codes, to cross them, or do not.
Texts = Literal["crossed", "slots"]
# Numbers that are codes are numbers for all heads; those that listen also get them as codes.
Codes = Literal["crossed", "numbers"]
_ARRAYS, _NAMED = "arrays of numbers", "objects of named numbers"
# Numbers that rows of a table may become where they name few of its columns.
MOST_NUMBERS = 1 << 25


class Preparing(NamedTuple):
    """How rows are prepared; a spec has the same defaults, and says what they mean."""

    missing: Missing = "mean"
    named: Literal["table", "sparse"] = "table"
    timestamps: tuple[str, ...] = ()
    texts: Texts = "crossed"
    codes: Codes = "crossed"
    columns: tuple[tuple[str, Kind], ...] = ()
    names: Names = "learned"

    @property
    def fixed(self) -> tuple[tuple[str, Kind], ...]:
        """The kinds of columns that are given."""
        times: dict[str, Kind] = dict.fromkeys(self.timestamps, "time")
        return tuple({**times, **dict(self.columns)}.items())


class AnotherKind(ValueError):
    """Rows of another kind than those of the first sample. must: the kind that they must have."""

    def __init__(self, message: str, must: str) -> None:
        super().__init__(message)
        self.must = must


class RowForm(NamedTuple):
    """What a model's rows are after some samples; nothing is settled before the first.

    prepare: None if rows are learned as they come. width: numbers in a row where rows are
    arrays. schema: where they are a table. sparse: whether they are sparse rows by name.
    samples: of arrays that were seen while they settled what is a code. coded: the columns of
    encoded rows whose numbers are codes. bent: those whose logarithms are learned, with their
    bends.
    """

    prepare: Preparing | None
    width: int | None = None
    schema: Schema | None = None
    sparse: bool = False
    samples: int = 0
    coded: tuple[int, ...] = ()
    bent: tuple[tuple[int, float], ...] = ()

    @property
    def begun(self) -> bool:
        """Whether there were any rows."""
        return self.sparse or self.schema is not None or self.width is not None

    @property
    def settled(self) -> bool:
        """Whether more rows of the same form change nothing that heads see."""
        if self.schema is not None:
            return self.schema.settled
        return self.begun and (self.sparse or not self._codes or self.samples >= SETTLING)

    @property
    def features(self) -> int | None:
        """Columns of arrays and tables; None before the first sample, and of sparse rows."""
        return self.width if self.schema is None else len(self.schema.columns)

    @property
    def layout(self) -> Layout | None:
        """Of the numbers and codes that `encoded` gives; None if there are none."""
        indicators = self.prepare is not None and self.prepare.missing == "indicator"
        if self.schema is not None:
            of_table = layout(self.schema, indicators=indicators)
            bends = ((of_table.numbers.index(j), bend) for j, bend in self.bent)
            return of_table._replace(bends=tuple(bends))
        if self.width is None:
            return None
        return layout_of(["number"] * self.width, indicators=indicators)

    @property
    def prepared_width(self) -> int | None:
        """The number of prepared columns; None before the first sample, and of sparse rows."""
        of_rows = self.layout
        return None if of_rows is None else of_rows.width

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
        """Whether rows have words, which are crossed as texts are."""
        crossed = self.prepare is not None and self.prepare.texts == "crossed"
        return crossed and self.schema is not None and self.schema.wordy

    @property
    def crossed_width(self) -> int:
        """The columns of what `crossed` gives; 0 if there are none."""
        return len(self.crossed_columns) + (MOST_CODES if self.wordy else 0)

    @property
    def _codes(self) -> bool:
        """Whether numbers that are codes are crossed, too."""
        return self.prepare is not None and self.prepare.codes == "crossed"

    def after(self, rows: Rows) -> "RowForm":
        """Return the form after some more rows to learn. Raises Misfit, AnotherKind.

        A sequence of blocks gives the same, however it is cut.
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
        """Return a settled form that knows by its first rows which numbers are codes.

        Of a table, also which ones have heavy tails.
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

    def for_good(self) -> "RowForm":
        """Return the form, whose columns no further sample changes."""
        if self.settled:
            return self
        if self.schema is None:
            return self._replace(samples=SETTLING)
        return self._replace(schema=self.schema._replace(samples=SETTLING))

    def without_head(self) -> "RowForm":
        """Return the form without the first rows, which are of no use to predictions."""
        if self.schema is None or not self.schema.head.rows:
            return self
        return self._replace(schema=self.schema._replace(head=Head()))

    def taken(self, rows: Rows | TableRows) -> tuple["RowForm", TableRows]:
        """Return the form after more rows of a settled table, and these, for it. Raises Misfit."""
        table = taken(self.table(rows))
        form = self if table.schema is self.schema else self._replace(schema=table.schema)
        return form, table

    def checked(self, rows: Rows | TableRows) -> Rows | TableRows:
        """Return rows to predict, those of a table as one. Raises Misfit, AnotherKind."""
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
        """Refuse rows of a request that become many more numbers than they bring. Raises Misfit.

        A row of a table has a number for each column, however few it names.
        """
        columns = 0 if self.schema is None else len(self.schema.columns)
        if n_rows(rows) * columns > max(MOST_NUMBERS, n_entries(rows)):
            detail = (
                f"is of {n_rows(rows)} rows for a table of {columns} columns, which takes "
                f"{MOST_NUMBERS // columns} at a time: send smaller batches"
            )
            raise Misfit(0, None, detail)

    def encoded(self, rows: Rows | TableRows) -> Float64Array:
        """Rows that fit as numbers and codes, (n, columns of the layout); NaN where missing."""
        if self.schema is not None:
            return encode(self.table(rows))
        assert not isinstance(rows, TableRows)
        return _unnamed(rows)

    def words(self, rows: Rows | TableRows) -> Float64Array | None:
        """Codes of the words of rows that fit, (n, MOST_CODES); None if they are not learned."""
        return encoded_words(self.table(rows)) if self.wordy else None

    def crossed(self, encoded: Float64Array, words: Float64Array | None) -> Float64Array | None:
        """Codes (n, crossed_width) of rows for learners that cross them; None if there are none.

        encoded, words: of the rows. Codes of texts and numbers come first, then those of words.
        """
        columns = list(self.crossed_columns)
        if not columns:
            return words
        texts = encoded[:, columns[: len(columns) - len(self.coded)]]
        parts = [texts, codes_of_numbers(encoded[:, list(self.coded)])]
        return np.concatenate(parts if words is None else [*parts, words], axis=1)

    def table(self, rows: Rows | TableRows) -> TableRows:
        """Return rows as those of the table. Raises Misfit for names that it lacks."""
        if isinstance(rows, TableRows):
            return rows
        assert self.schema is not None
        return TableRows(self.schema, self.cells(rows))

    def cells(self, rows: Rows) -> Cells:
        """Return rows as cells, without room for names that the table does not learn.

        Raises Misfit for names that it lacks and refuses.
        """
        if self.schema is None or not isinstance(rows, NamedRows):
            return cells(rows)
        known = {*self.schema.names, *self.schema.late}
        new = [name for name in rows.names if name not in known]
        if not new:
            return cells(rows)
        if not self.schema.open:
            return _refused(self.schema, rows)
        taken = frozenset(new[: MOST_LATE - len(self.schema.late)])
        return cells(_without_names(rows, frozenset(new) - taken))

    def _amounts(self) -> tuple[int, ...]:
        """Return the columns of encoded rows that are numbers and no part of a moment of time."""
        assert self.layout is not None
        moments = set[int]()
        at = 0
        for column in () if self.schema is None else self.schema.columns:
            if column.moment or column.reading.kind == "text":
                moments |= set(range(at, at + column.n_numbers))
            elif column.used:
                moments |= set(range(at + column.numeric, at + column.n_numbers))
            at += column.n_numbers + (column.used and column.slots > 0)
        if self.schema is not None:  # the differences of moments come last
            moments |= set(range(at, at + len(self.schema.columns.paired_moments)))
        return tuple(j for j in self.layout.numbers if j not in moments)

    def _extended(self, rows: Rows) -> "RowForm":
        """With the rows in the schema, one by one while it settles: each has names of its own."""
        schema, i, n = self.schema, 0, n_rows(rows)
        assert schema is not None
        while i < n:
            stop = n if schema.settled else i + 1
            part = rows_between(rows, i, stop)
            if schema.settled:
                table = self._replace(schema=schema).cells(part)
            else:  # all of its names, of which any may become a column
                table = cells(with_own_words(part))
            try:
                wider = extended(schema, table)
            except Misfit as misfit:
                raise misfit.moved(i) from None
            if wider is None:
                return RowForm(self.prepare, sparse=True).after(rows_between(rows, i, n))
            schema, i = wider, stop
        return self if schema is self.schema else self._replace(schema=schema)

    def _begins_sparse(self, rows: Rows) -> bool:
        """Return whether the first rows are sparse without a look at them."""
        if self.begun or isinstance(rows, np.ndarray) or rows.names is None:
            return False
        if self.prepare is None:
            return isinstance(rows, NamedRows)
        return self.prepare.named == "sparse"

    def _first_schema(self, rows: Rows) -> Schema:
        """The schema before rows that are the first, or the first with names after arrays."""
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
    """Rows for a model that was taught without names, which takes values by their places."""
    if isinstance(rows, NamedRows):
        raise _another_kind(_ARRAYS)
    if isinstance(rows, Cells):
        return encode(TableRows(_numbers_like(rows), rows))
    return rows


def _numbers_like(rows: Cells) -> Schema:
    names = rows.names or tuple(map(str, range(rows.numbers.shape[1])))
    return settled_numbers(names, strict=False)


def sparse_rows(rows: Rows) -> NamedRows:
    """Return rows that fit a model of sparse rows, without their zeros."""
    if isinstance(rows, Cells):
        return named_columns(list(rows.names or ()), np.nan_to_num(rows.numbers))
    assert isinstance(rows, NamedRows)
    return without_zeros(rows)


def _refused(schema: Schema, rows: NamedRows) -> Cells:
    """Raise Misfit for the first row that has a name which the table lacks.

    So no request reserves room for more names than the table has.
    """
    known = frozenset(schema.names)
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
    """Return rows without these names and their values."""
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
