"""The published view of a model: what predictions and descriptions read."""

from typing import NamedTuple

from service.errors import InvalidSamples
from service.heads.protocol import HeadView
from service.samples.named_rows import NamedRows, NameTable, Rows
from service.spec.heads import HeadName
from solver.rows.matrix import Matrix


class Published(NamedTuple):
    """A model as readers see it: replaced as a whole after each block, never changed.

    dimension: numbers in a row, or names known; None before the first sample.
    names: the model's table if its rows are named; it may have grown since.
    """

    sequence: int
    dimension: int | None
    names: NameTable | None
    heads: dict[HeadName, HeadView]

    def matrix(self, rows: Rows) -> Matrix:
        """Rows to predict, in the form that the heads learned. Raises InvalidSamples."""
        check_rows(rows, self.dimension, self.names is not None)
        if not isinstance(rows, NamedRows):
            return rows
        return (self.names or NameTable()).matrix(rows, self.dimension or 0)


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
