"""Predictions from a learner's published view, and what they cost."""

from typing import Any, TypeAlias

from numpy.typing import NDArray

from service.learner import check_norms
from solver import asset, view
from solver.asset import AssetView
from solver.features import IdentityMap
from solver.fourier import FourierMap
from solver.kernels import Float64Array
from solver.nystrom import NystromMap
from solver.rows import Matrix, SparseRows, first_features, n_nonzeros, n_rows
from solver.view import WorkingSetView

LearnerView: TypeAlias = WorkingSetView | AssetView

# In multiplications, as measured: what a row costs besides them, each of its decisions as a
# number to be sent, a cosine or an exponential, and finding a sparse row's number.
_COST_OF_ROW, _COST_OF_DECISION = 1000, 400
_COST_OF_FUNCTION, _COST_OF_LOOKUP = 50, 30


def predict(
    model: LearnerView, X: Matrix, largest_square_norm: float, features: int
) -> tuple[NDArray[Any], Float64Array]:
    """Class numbers or targets, and decisions, of finite rows; raises InvalidSamples.

    features: how many features of sparse rows are known. Those that are new to Fourier's map
    are left out: it has no frequencies for them, and to draw some for each request would cost
    more than the answer.
    """
    check_norms(X, largest_square_norm)
    if isinstance(model, WorkingSetView):
        return view.predict(model, X)
    if isinstance(X, SparseRows) and isinstance(model.features, FourierMap):
        X = first_features(X, features)
    return asset.predict(model, X)


def cost(model: LearnerView, rows: int, entries: int) -> int:
    """Multiplications of a prediction; see `HeadView.cost`."""
    if isinstance(model, WorkingSetView):
        return cost_of_expansion(model.rows.exact, rows, entries)
    features = model.features
    machines, columns = len(model.coefficients), int(model.coefficients.shape[1])
    each = _COST_OF_ROW + machines * _COST_OF_DECISION
    if isinstance(features, IdentityMap):
        return rows * each + entries * machines
    each += columns * (_COST_OF_FUNCTION + machines)
    if isinstance(features, NystromMap):
        return rows * each + _cost_of_kernel(features.landmarks.exact, rows, entries)
    return rows * each + entries * columns


def cost_of_expansion(stored: Matrix, rows: int, entries: int) -> int:
    """Multiplications of a kernel expansion over stored rows; see `HeadView.cost`."""
    return rows * _COST_OF_ROW + _cost_of_kernel(stored, rows, entries)


def _cost_of_kernel(stored: Matrix, rows: int, entries: int) -> int:
    """Of the products of rows with stored ones."""
    if isinstance(stored, SparseRows):
        # Each stored number is looked up once and multiplied with at most every row.
        lookups = _COST_OF_LOOKUP * n_nonzeros(stored)
        return lookups + rows * (n_rows(stored) + n_nonzeros(stored))
    return entries * n_rows(stored)
