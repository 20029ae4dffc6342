"""Predictions from a learner's published view, and what they cost."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.learner import check_norms
from solver import asset, view
from solver.asset import AssetView
from solver.kernels import Float64Array
from solver.rows import Matrix, SparseRows, first_features, n_nonzeros, n_rows, square_norms
from solver.view import WorkingSetView

LearnerView: TypeAlias = WorkingSetView | AssetView

# In multiplications: what a row costs besides them, a cosine, and finding a sparse row's number.
_COST_OF_ROW, _COST_OF_COSINE, _COST_OF_LOOKUP = 1000, 50, 30


def predict(
    model: LearnerView, X: Matrix, largest_square_norm: float, features: int
) -> tuple[NDArray[Any], Float64Array]:
    """Class numbers or targets, and decisions, of finite rows; raises InvalidSamples.

    features: how many features of sparse rows are known. Those that are new to ASSET are left
    out: it has no frequencies for them, and to draw some for each request would cost more than
    the answer.
    """
    with np.errstate(over="ignore"):
        square_norm = square_norms(X)
    check_norms(square_norm, largest_square_norm)
    if isinstance(model, WorkingSetView):
        return view.predict(model, X)
    if isinstance(X, SparseRows):
        X = first_features(X, features)
    return asset.predict(model, X)


def cost(model: LearnerView, rows: int, entries: int) -> int:
    """Multiplications of a prediction; see `HeadView.cost`."""
    if isinstance(model, WorkingSetView):
        stored = model.rows.exact
        if isinstance(stored, SparseRows):
            # Each stored number is looked up once and multiplied with at most every row.
            lookups = _COST_OF_LOOKUP * n_nonzeros(stored)
            return lookups + rows * (_COST_OF_ROW + n_rows(stored) + n_nonzeros(stored))
        return cost_of_expansion(n_rows(stored), rows, entries)
    frequencies, classes = len(model.features.phase), len(model.b)
    each = _COST_OF_ROW + frequencies * (_COST_OF_COSINE + classes)
    return rows * each + frequencies * entries


def cost_of_expansion(vectors: int, rows: int, entries: int) -> int:
    """Multiplications of a kernel expansion of so many dense vectors; see `HeadView.cost`."""
    return rows * _COST_OF_ROW + entries * vectors
