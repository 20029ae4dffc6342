"""Prepares the rows of a stream for heads: their form, names of sparse features, and scaling."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.cells import Cells
from wolfstream.solver.prepare.column_facts import MOST_NOTICES, ColumnFacts, FactsView, Notice
from wolfstream.solver.prepare.columns import Preparation, PreparationView, prepared
from wolfstream.solver.prepare.named_rows import (
    NamedRows,
    NameTable,
    Rows,
    form_of,
    joined,
    rows_between,
    with_own_texts,
)
from wolfstream.solver.prepare.row_form import PreparationParameters, RowForm, sparse_rows
from wolfstream.solver.prepare.schema import SETTLING
from wolfstream.solver.prepare.settling import first_order_row
from wolfstream.solver.prepare.table_rows import TableRows
from wolfstream.solver.rows.head_rows import HeadRows, RawRows
from wolfstream.solver.rows.matrix import Matrix, SparseRows
from wolfstream.solver.rows.sample_weights import Weights, joined_weights, weights_of


class StreamSamples(NamedTuple):
    """Consecutive samples of a stream."""

    head: str  # the head that they were posted for
    X: Rows
    y: list[Any] | NDArray[Any]  # n labels, or (n,) targets
    weight: Weights = None

    def between(self, start: int, stop: int) -> "StreamSamples":
        """Return the samples from `start` up to `stop`."""
        rows, part = rows_between(self.X, start, stop), slice(start, stop)
        return StreamSamples(self.head, rows, self.y[part], weights_of(self.weight, part))

    def followed_by(self, other: "StreamSamples") -> "StreamSamples | None":
        """Return both as one; None if their heads or the forms of their rows differ."""
        if self.head != other.head or form_of(self.X) != form_of(other.X):
            return None
        targets = [y for y in (self.y, other.y) if isinstance(y, np.ndarray)]
        y = np.concatenate(targets) if targets else [*self.y, *other.y]
        weight = joined_weights([(part.weight, len(part.y)) for part in (self, other)])
        return StreamSamples(self.head, joined([self.X, other.X]), y, weight)


class PreparedSamples(NamedTuple):
    """Samples to learn, and their rows as heads see them."""

    samples: StreamSamples
    rows: HeadRows


class RowsView(NamedTuple):
    """An immutable view of the form and the preparation of rows."""

    form: RowForm
    # Values in a row, or names so far; None before the first sample.
    dimension: int | None = None
    names: NameTable | None = None  # of sparse rows; names may have been added since
    preparation: PreparationView | None = None  # None if heads take rows as they come
    facts: FactsView | None = None  # of the columns of a table

    def head_rows(self, rows: Rows | TableRows) -> HeadRows:
        """Return rows to predict as heads see them. Raises Misfit, AnotherKind for other forms."""
        rows = self.form.checked(rows)
        if isinstance(rows, TableRows):
            return self.prepared(self.form.encoded(rows), self.form.words(rows))
        if self.form.sparse or (isinstance(rows, NamedRows) and not self.form.begun):
            return HeadRows(
                (self.names or NameTable()).matrix(sparse_rows(rows), self.dimension or 0)
            )
        if self.form.begun:
            return self.prepared(self.form.encoded(rows))
        assert not isinstance(rows, NamedRows)
        return HeadRows(rows.numbers if isinstance(rows, Cells) else rows)

    def prepared(self, X: Matrix, words: Float64Array | None = None) -> HeadRows:
        """Return encoded rows to predict as heads see them.

        X: n encoded or sparse rows; sparse rows stay as they are.
        words: (n, k) codes of the rows' words; None without words.
        """
        if isinstance(X, SparseRows):
            return HeadRows(X)
        if self.preparation is None:
            return HeadRows(X, raw=RawRows(X))
        raw = RawRows(X, self.form.categorical, words)
        return HeadRows(prepared(self.preparation, X), self.form.crossed(X, words), raw)


def _changes(before: RowForm, after: RowForm) -> bool:
    """Return whether heads see rows differently."""
    return not _have_same_columns(before, after) and _as_seen(before) != _as_seen(after)


def _have_same_columns(before: RowForm, after: RowForm) -> bool:
    """Return whether only counts differ; this is cheaper than to compare layouts of wide rows."""
    if before.schema is None or after.schema is None:
        return False
    same = before.schema.columns == after.schema.columns
    return same and before._replace(schema=None) == after._replace(schema=None)


def _as_seen(form: RowForm) -> tuple[Any, ...]:
    """Return all that determines what heads see of rows."""
    read = None if form.schema is None else form.schema.columns.read
    return form.layout, form.sparse, form.coded, form.bent, read


class StreamRows:
    """Prepares the rows of a stream for heads; stores the first ones while their form may change.

    prepare: how rows are prepared; None if they are learned as they come.
    form: of the rows so far.
    names: of sparse features.
    first: the samples so far, while a row may still change what heads see of all of them.
    preparation: None before the first rows, or if rows are learned as they come.
    facts: of the columns of a table that is prepared.
    notices: about the last samples.
    """

    def __init__(self, prepare: PreparationParameters | None) -> None:
        self.form = RowForm(prepare)
        self.names: NameTable | None = None
        self.first: list[StreamSamples] = []
        self.preparation: Preparation | None = None
        self.facts = ColumnFacts()
        self.notices: list[Notice] = []

    @property
    def dimension(self) -> int | None:
        """Values in a row, or names so far; None before the first sample."""
        return self.form.features if self.names is None else len(self.names)

    def settling(
        self, samples: StreamSamples, learn_anew: Callable[[], None]
    ) -> Iterator[PreparedSamples]:
        """Yield samples in parts, cut where a row changes what heads see of all rows.

        The caller must learn each part before it asks for the next.

        samples: to learn.
        learn_anew: replaces the heads and lets them learn `first`; called before such a row.

        Raises Misfit and AnotherKind for rows of another form.
        """
        form = self.form
        if form.schema is None and form.settled and isinstance(samples.X, np.ndarray):
            self.form, self.notices = form.after(samples.X), []
            yield self._prepared(samples)
            return
        # Each part would otherwise read all texts of a large request again.
        samples = samples._replace(X=with_own_texts(samples.X))
        start, n, notices = 0, len(samples.y), list[Notice]()
        while start < n:
            schema = self.form.schema
            if schema is not None and schema.settled:
                rest = samples if start == 0 else samples.between(start, n)
                for prepared_part in self._table_parts(rest):
                    yield prepared_part
                    notices += self.notices
                break
            # Once a table has settled, its rows are read by `_table_parts`.
            left = SETTLING - (0 if schema is None else schema.samples)
            never_settles = self.form.sparse or isinstance(samples.X, np.ndarray)
            stop = n if never_settles else min(n, start + left)
            part = samples if (start, stop) == (0, n) else samples.between(start, stop)
            yield from self._settling(part, learn_anew)
            notices += self.notices
            start = stop
        self.notices = notices[:MOST_NOTICES]

    def _table_parts(self, samples: StreamSamples) -> Iterator[PreparedSamples]:
        """Yield the samples of a settled table, whose cells are read once.

        A part ends before the first row that shows the order of days and months in dates, so that
        the rows before it are read without this order, however requests cut the stream.
        """
        cells, start, n = self.form.cells(samples.X), 0, len(samples.y)
        while start < n:
            rest = self.form.table(cells.rows(start, n) if start else cells)
            row = first_order_row(rest)
            stop = n if row is None else start + max(row, 1)
            table = rest if stop == n else self.form.table(cells.rows(start, stop))
            part = samples if stop - start == n else samples.between(start, stop)
            self.form, table = self.form.taken(table)
            self._note(table)
            seen = self.prepared(self.form.encoded(table), self.form.words(table))
            yield PreparedSamples(part, seen)
            start = stop

    def _settling(
        self, samples: StreamSamples, learn_anew: Callable[[], None]
    ) -> Iterator[PreparedSamples]:
        i, start, n = 0, 0, len(samples.y)
        while i < n and not self.form.settled:
            after = self.form.after(rows_between(samples.X, i, i + 1))
            if after.settled:
                own = rows_between(samples.X, start, i + 1)
                after = after.with_first([*(part.X for part in self.first), own])
            if _changes(self.form, after):
                if start < i:
                    yield self._prepared(self._stored(samples.between(start, i)))
                self.form, self.names, self.preparation = after, None, None
                if self.first:
                    learn_anew()
                start = i
            self.form, i = after, i + 1
        self.form = self.form.after(rows_between(samples.X, i, n)) if i < n else self.form
        self.note(samples.X)
        if self.form.settled:
            self.first = []
            yield self._prepared(samples if start == 0 else samples.between(start, n))
        else:
            yield self._prepared(self._stored(samples.between(start, n)))

    def note(self, rows: Rows) -> None:
        """Include the rows of a table in the facts about its columns."""
        self.notices = []
        if self.form.schema is not None:
            self._note(self.form.table(rows))

    def _note(self, table: TableRows) -> None:
        self.notices = [] if table.schema.strict else self.facts.take(table)

    def _prepared(self, samples: StreamSamples) -> PreparedSamples:
        return PreparedSamples(samples, self.head_rows(samples.X))

    def head_rows(self, rows: Rows) -> HeadRows:
        """Return rows to learn as heads see them; scales and names include them from now on."""
        if not self.form.sparse:
            return self.prepared(self.form.encoded(rows), self.form.words(rows))
        named = sparse_rows(rows)
        if self.names is None:
            self.names = NameTable()
        self.names.add(named.names)
        return HeadRows(self.names.matrix(named, len(self.names)))

    def prepared(self, X: Matrix, words: Float64Array | None = None) -> HeadRows:
        """Return encoded rows to learn as heads see them; arguments as in `RowsView.prepared`."""
        if isinstance(X, SparseRows):
            return HeadRows(X)
        if self.preparation is None:
            self.preparation = self.fresh_preparation()
        if self.preparation is None:
            return HeadRows(X, raw=RawRows(X))
        raw = RawRows(X, self.form.categorical, words)
        return HeadRows(self.preparation.absorb(X), self.form.crossed(X, words), raw)

    def fresh_preparation(self) -> Preparation | None:
        """Return a preparation of rows of this form before the first row; None if it has none."""
        prepare = self.form.prepare
        layout = None if prepare is None else self.form.layout
        if prepare is None or layout is None:
            return None
        return Preparation(layout)

    def restore_preparation(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `Preparation.state` returned, if rows of this form are prepared."""
        self.preparation = self.fresh_preparation()
        if self.preparation is not None:
            self.preparation.restore(state)

    def view(self) -> RowsView:
        """Return an immutable view."""
        preparation = None if self.preparation is None else self.preparation.view()
        facts = None if self.form.schema is None else self.facts.view()
        return RowsView(self.form.without_head(), self.dimension, self.names, preparation, facts)

    def _stored(self, samples: StreamSamples) -> StreamSamples:
        """Append samples to `first`, joined with the last ones if these can be; return them."""
        joined_samples = self.first[-1].followed_by(samples) if self.first else None
        if joined_samples is None:
            self.first.append(samples)
        else:
            self.first[-1] = joined_samples
        return samples
