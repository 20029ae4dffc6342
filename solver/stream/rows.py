"""The rows of a stream as heads see them: their form, the names of sparse ones, the preparation."""

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
from wolfstream.solver.prepare.row_form import Preparing, RowForm, sparse_rows
from wolfstream.solver.prepare.schema import SETTLING
from wolfstream.solver.prepare.settling import first_order_row
from wolfstream.solver.prepare.table_rows import TableRows
from wolfstream.solver.rows.matrix import Matrix, SparseRows
from wolfstream.solver.rows.sample_weights import Weights, joined_weights, weights_of
from wolfstream.solver.rows.seen import RawRows, Seen


class Part(NamedTuple):
    """Consecutive samples of a stream: rows with n labels or (n,) targets.

    head: the one that they were posted for. weight: how much each sample counts.
    """

    head: str
    X: Rows
    y: list[Any] | NDArray[Any]
    weight: Weights = None

    def between(self, start: int, stop: int) -> "Part":
        """Return some of the samples."""
        rows, part = rows_between(self.X, start, stop), slice(start, stop)
        return Part(self.head, rows, self.y[part], weights_of(self.weight, part))

    def followed_by(self, other: "Part") -> "Part | None":
        """Return both as one; None if their heads or the forms of their rows differ."""
        if self.head != other.head or form_of(self.X) != form_of(other.X):
            return None
        targets = [y for y in (self.y, other.y) if isinstance(y, np.ndarray)]
        y = np.concatenate(targets) if targets else [*self.y, *other.y]
        weight = joined_weights([(one.weight, len(one.y)) for one in (self, other)])
        return Part(self.head, joined([self.X, other.X]), y, weight)


class Settled(NamedTuple):
    """Samples to be learned now, and their rows as heads see them."""

    samples: Part
    rows: Seen


class RowsView(NamedTuple):
    """An immutable view of what rows are.

    dimension: values in a row, or names known; None before the first sample.
    names: of sparse rows; there may be more since.
    preparation: of rows before a head sees them; None if heads take them as they come. facts: of
    the columns of a table.
    """

    form: RowForm
    dimension: int | None = None
    names: NameTable | None = None
    preparation: PreparationView | None = None
    facts: FactsView | None = None

    def seen(self, rows: Rows | TableRows) -> Seen:
        """Return rows to predict, in the form that heads learned. Raises Misfit, AnotherKind."""
        rows = self.form.checked(rows)
        if isinstance(rows, TableRows):
            return self.prepared(self.form.encoded(rows), self.form.words(rows))
        if self.form.sparse or (isinstance(rows, NamedRows) and not self.form.begun):
            return Seen((self.names or NameTable()).matrix(sparse_rows(rows), self.dimension or 0))
        if self.form.begun:
            return self.prepared(self.form.encoded(rows))
        assert not isinstance(rows, NamedRows)
        return Seen(rows.numbers if isinstance(rows, Cells) else rows)

    def prepared(self, X: Matrix, words: Float64Array | None = None) -> Seen:
        """Encoded rows as heads see them, with their words; sparse rows as they are."""
        if isinstance(X, SparseRows):
            return Seen(X)
        if self.preparation is None:
            return Seen(X, raw=RawRows(X))
        raw = RawRows(X, self.form.categorical, words)
        return Seen(prepared(self.preparation, X), self.form.crossed(X, words), raw)


def _changes(before: RowForm, after: RowForm) -> bool:
    """Return whether heads see rows differently."""
    return not _of_same_columns(before, after) and _as_seen(before) != _as_seen(after)


def _of_same_columns(before: RowForm, after: RowForm) -> bool:
    """Return whether only a count differs, which is seen without the layouts of wide rows."""
    if before.schema is None or after.schema is None:
        return False
    same = before.schema.columns == after.schema.columns
    return same and before._replace(schema=None) == after._replace(schema=None)


def _as_seen(form: RowForm) -> tuple[Any, ...]:
    """Return what decides what heads see of rows."""
    read = None if form.schema is None else form.schema.columns.read
    return form.layout, form.sparse, form.coded, form.bent, read


class StreamRows:
    """Makes the rows of a stream fit for heads, and keeps the first ones while this may change.

    form: of the rows so far. names: see `RowsView`. first: the samples learned so far, as long as
    a row may still change what heads see of all of them.
    preparation: None before the first rows, and where they are learned as they come. facts: of the
    columns of a table that is prepared. notices: what is to be said of the last samples.
    """

    def __init__(self, prepare: Preparing | None) -> None:
        self.form = RowForm(prepare)
        self.names: NameTable | None = None
        self.first: list[Part] = []
        self.preparation: Preparation | None = None
        self.facts = ColumnFacts()
        self.notices: list[Notice] = []

    @property
    def dimension(self) -> int | None:
        """As of `RowsView`."""
        return self.form.features if self.names is None else len(self.names)

    def settling(self, samples: Part, learn_anew: Callable[[], None]) -> Iterator[Settled]:
        """The samples, cut where a row changes what heads see; each part is to be learned at once.

        learn_anew: has fresh heads learn all of `first`; called before such a row.
        Raises Misfit, AnotherKind.
        """
        form = self.form
        if form.schema is None and form.settled and isinstance(samples.X, np.ndarray):
            self.form, self.notices = form.after(samples.X), []
            yield self._settled(samples)
            return
        # A part of a large request has all its texts: what is done for each would be done again.
        samples = samples._replace(X=with_own_texts(samples.X))
        start, n, notices = 0, len(samples.y), list[Notice]()
        while start < n:
            schema = self.form.schema
            if schema is not None and schema.settled:
                for settled in self._of_table(samples if start == 0 else samples.between(start, n)):
                    yield settled
                    notices += self.notices
                break
            # Rows that follow are read in another way once a table has settled.
            left = SETTLING - (0 if schema is None else schema.samples)
            unending = self.form.sparse or isinstance(samples.X, np.ndarray)
            stop = n if unending else min(n, start + left)
            part = samples if (start, stop) == (0, n) else samples.between(start, stop)
            yield from self._settling(part, learn_anew)
            notices += self.notices
            start = stop
        self.notices = notices[:MOST_NOTICES]

    def _of_table(self, samples: Part) -> Iterator[Settled]:
        """The samples of a settled table, whose cells are read once for all that is learned.

        Rows before the first that shows the order of days and months in dates are read as they were
        so far, however they came.
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
            yield Settled(part, self.prepared(self.form.encoded(table), self.form.words(table)))
            start = stop

    def _settling(self, samples: Part, learn_anew: Callable[[], None]) -> Iterator[Settled]:
        i, start, n = 0, 0, len(samples.y)
        while i < n and not self.form.settled:
            after = self.form.after(rows_between(samples.X, i, i + 1))
            if after.settled:
                own = rows_between(samples.X, start, i + 1)
                after = after.with_first([*(part.X for part in self.first), own])
            if _changes(self.form, after):
                if start < i:
                    yield self._settled(self._kept(samples.between(start, i)))
                self.form, self.names, self.preparation = after, None, None
                if self.first:
                    learn_anew()
                start = i
            self.form, i = after, i + 1
        self.form = self.form.after(rows_between(samples.X, i, n)) if i < n else self.form
        self.note(samples.X)
        if self.form.settled:
            self.first = []
            yield self._settled(samples if start == 0 else samples.between(start, n))
        else:
            yield self._settled(self._kept(samples.between(start, n)))

    def note(self, rows: Rows) -> None:
        """Take the rows of a table, whose form is known, into the facts about its columns."""
        self.notices = []
        if self.form.schema is not None:
            self._note(self.form.table(rows))

    def _note(self, table: TableRows) -> None:
        self.notices = [] if table.schema.strict else self.facts.take(table)

    def _settled(self, samples: Part) -> Settled:
        return Settled(samples, self.seen(samples.X))

    def seen(self, rows: Rows) -> Seen:
        """Return rows to learn, which fit; the preparation and the names take them in."""
        if not self.form.sparse:
            return self.prepared(self.form.encoded(rows), self.form.words(rows))
        named = sparse_rows(rows)
        if self.names is None:
            self.names = NameTable()
        self.names.add(named.names)
        return Seen(self.names.matrix(named, len(self.names)))

    def prepared(self, X: Matrix, words: Float64Array | None = None) -> Seen:
        """Encoded rows, prepared as the next ones, with their words; sparse rows as they are."""
        if isinstance(X, SparseRows):
            return Seen(X)
        if self.preparation is None:
            self.preparation = self.fresh_preparation()
        if self.preparation is None:
            return Seen(X, raw=RawRows(X))
        raw = RawRows(X, self.form.categorical, words)
        return Seen(self.preparation.absorb(X), self.form.crossed(X, words), raw)

    def fresh_preparation(self) -> Preparation | None:
        """A preparation of rows of this form before the first; None where there is none."""
        prepare = self.form.prepare
        layout = None if prepare is None else self.form.layout
        if prepare is None or layout is None:
            return None
        return Preparation(layout)

    def restore_preparation(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `Preparation.state` gave, if rows of this form are prepared."""
        self.preparation = self.fresh_preparation()
        if self.preparation is not None:
            self.preparation.restore(state)

    def view(self) -> RowsView:
        """Return what rows are now."""
        preparation = None if self.preparation is None else self.preparation.view()
        facts = None if self.form.schema is None else self.facts.view()
        return RowsView(self.form.without_head(), self.dimension, self.names, preparation, facts)

    def _kept(self, samples: Part) -> Part:
        """Return the samples, which are kept; those of one head and form become one part."""
        one = self.first[-1].followed_by(samples) if self.first else None
        if one is None:
            self.first.append(samples)
        else:
            self.first[-1] = one
        return samples
