"""The published view of a model: what predictions and descriptions read."""

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from service.errors import InvalidSamples
from service.heads.kinds import KINDS
from service.heads.protocol import HeadView, Predictions
from service.heads.votes import Votes, vote_of
from service.samples.named_rows import NamedRows, NameTable, Rows
from service.spec.heads import HeadName
from solver.prepare.columns import PreparationView, prepared
from solver.rows.matrix import Matrix, SparseRows


class Published(NamedTuple):
    """A model as readers see it: replaced as a whole after each block, never changed.

    epoch: the life of the model that the sequence counts in.
    dimension: numbers in a row, or names known; None before the first sample.
    names: the model's table if its rows are named; it may have grown since.
    preparation: of rows before a head sees them; None where heads take them as they come.
    """

    sequence: int
    epoch: str
    dimension: int | None
    names: NameTable | None
    preparation: PreparationView | None
    heads: dict[HeadName, HeadView]

    def predict(self, head: HeadName, X: Matrix) -> Predictions:
        """What a head predicts for rows, told what the others predict if it listens to them.

        Raises Untrained, InvalidSamples.
        """
        votes: Votes = {}
        if KINDS[head].listens:
            others = {name: view for name, view in self.heads.items() if name != head}
            votes = {
                name: vote_of(self.heads[name].classes, predicted.decision)
                for name, predicted in predict_each(others, X).items()
            }
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
        check_rows(rows, self.dimension, self.names is not None)
        if not isinstance(rows, NamedRows):
            return self.prepared(rows)
        return (self.names or NameTable()).matrix(rows, self.dimension or 0)


def predict_each(views: Mapping[HeadName, HeadView], X: Matrix) -> dict[HeadName, Predictions]:
    """What those of the views predict for rows that have learned enough and can take them."""
    predictions: dict[HeadName, Predictions] = {}
    for name, view in views.items():
        if not view.lacks:
            with suppress(InvalidSamples):
                predictions[name] = view.predict(X)
    return predictions


def check_rows(rows: Rows, dimension: int | None, named: bool) -> None:
    """Raise InvalidSamples for rows of another kind or length than a model's.

    dimension: the model's, or None if it has no rows yet and takes any. named: its kind of rows.
    """
    if dimension is None:
        return
    if isinstance(rows, NamedRows) != named:
        takes, given = "arrays of numbers", "objects of named numbers"
        if named:
            takes, given = given, takes
        detail = f"the model's first sample decided that its rows are {takes}, these are {given}"
        raise InvalidSamples(detail, [{"pointer": "/x", "detail": f"must be {takes}"}])
    if not isinstance(rows, NamedRows) and rows.shape[1] != dimension:
        detail = f"has {rows.shape[1]} numbers, the model's rows have {dimension}"
        raise InvalidSamples(
            f"each row must have {dimension} numbers",
            [{"row": 0, "pointer": "/x/0", "detail": detail}],
        )
