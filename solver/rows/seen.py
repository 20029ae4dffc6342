"""Rows as the heads of a model see them."""

from typing import NamedTuple

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.rows.matrix import Matrix


class Seen(NamedTuple):
    """n rows.

    X: in the form that all heads learn. codes: (n, texts) float64 of a table's texts, NaN where one
    is missing, for heads that listen; None where there are none, or texts are not crossed.
    """

    X: Matrix
    codes: Float64Array | None = None
