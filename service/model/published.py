"""The published view of a model: what predictions and descriptions read."""

from contextlib import suppress
from typing import NamedTuple

from service.errors import InvalidSamples
from service.heads.kinds import KINDS, LISTENERS
from service.heads.protocol import HeadView, Predictions
from service.model.row_form import RowForm, sparse_rows
from service.samples.named_rows import NamedRows, NameTable, Rows
from service.spec.heads import HeadName
from solver.prepare.cells import Cells
from solver.prepare.columns import PreparationView, prepared
from solver.rows.matrix import Matrix, SparseRows
from solver.stream.turns import votes_for


class Published(NamedTuple):
    """A model as readers see it: replaced as a whole after each block, never changed.

    epoch: the life of the model that the sequence counts in.
    dimension: values in a row, or names known; None before the first sample.
    names: the model's names if its rows are sparse; there may be more since.
    preparation: of rows before a head sees them; None where heads take them as they come.
    form: what its rows are.
    """

    sequence: int
    epoch: str
    dimension: int | None
    names: NameTable | None
    preparation: PreparationView | None
    heads: dict[HeadName, HeadView]
    form: RowForm = RowForm(None)

    def predict(self, head: HeadName, X: Matrix) -> Predictions:
        """What a head predicts for rows, told what the others predict if it listens to them.

        Raises Untrained, InvalidSamples.
        """
        votes = votes_for(head, self.heads, LISTENERS, lambda name: asked(self.heads[name], X))
        return self.heads[head].predict(X, votes)

    def prepared(self, X: Matrix) -> Matrix:
        """Rows to predict as the heads learned them; sparse rows as they are."""
        if self.preparation is None or isinstance(X, SparseRows):
            return X
        return prepared(self.preparation, X)

    def cost(self, head: HeadName, rows: int, entries: int) -> int:
        """Multiplications of a prediction; see `HeadView.cost`."""
        heads = self.heads if KINDS[head].listens else (head,)
        return sum(self.heads[name].cost(rows, entries) for name in heads)

    def matrix(self, rows: Rows) -> Matrix:
        """Rows to predict, in the form that the heads learned. Raises InvalidSamples."""
        self.form.check(rows)
        if self.form.sparse or (isinstance(rows, NamedRows) and not self.form.begun):
            return (self.names or NameTable()).matrix(sparse_rows(rows), self.dimension or 0)
        if self.form.begun:
            return self.prepared(self.form.encoded(rows))
        assert not isinstance(rows, NamedRows)
        return rows.numbers if isinstance(rows, Cells) else rows


def asked(view: HeadView, X: Matrix) -> Predictions | None:
    """What a head predicts for rows; None if it has learned too little or cannot take them."""
    if not view.lacks:
        with suppress(InvalidSamples):
            return view.predict(X)
    return None
