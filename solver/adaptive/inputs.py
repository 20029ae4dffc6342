"""The inputs of a bank's learners: few dense columns, and the sparse rows themselves.

Dense rows of at most MAX_WIDTH columns are taken as they are. Sparse rows and wider dense ones
become hashed columns for the second-order learners (`hashing`), and stay sparse for the diagonal
ones (`diagonal`).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.features import FeatureMap, draw_features, transform
from wolfstream.solver.adaptive.hashing import WIDTH, HashedColumns, hashed_and_standardised
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.scale import Moments
from wolfstream.solver.rows.matrix import Matrix, SparseRows

MAX_WIDTH = 256


class InputView(NamedTuple):
    """What a view keeps of inputs. moments: of hashed columns, None if rows are narrow."""

    features: FeatureMap
    moments: Moments | None


class Inputs:
    """The feature map of a bank, and hashed columns where rows are wide.

    columns: of dense rows; None for sparse rows. more: dense columns that the bank adds itself.
    """

    def __init__(self, columns: int | None, seed: int, more: int = 0) -> None:
        self.wide = columns is None or columns > MAX_WIDTH
        width = WIDTH if columns is None or columns > MAX_WIDTH else columns
        self.features = draw_features(width + more, seed)
        self.hashed = HashedColumns() if self.wide else None

    def absorb(
        self, X: Matrix, more: Float64Array | None = None
    ) -> tuple[Float64Array, SparseRows | None]:
        """(features (n, D), sparse rows or None) of rows; their moments are taken in."""
        sparse = as_sparse(X) if self.hashed is not None else None
        Z = X if self.hashed is None or sparse is None else self.hashed.absorb(sparse)
        return _transform(self.features, Z, more), sparse

    def view(self) -> InputView:
        """Return the inputs as they are now, for `inputs_of`."""
        return InputView(self.features, None if self.hashed is None else self.hashed.view())

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays, without the features, which the seed determines."""
        return {} if self.hashed is None else self.hashed.state()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        if self.hashed is not None:
            self.hashed.restore(state)


def inputs_of(
    view: InputView, X: Matrix, more: Float64Array | None = None
) -> tuple[Float64Array, SparseRows | None]:
    """Return what `Inputs.absorb` would give for each row, if it came next."""
    if view.moments is None:
        return _transform(view.features, X, more), None
    sparse = as_sparse(X)
    return _transform(view.features, hashed_and_standardised(view.moments, sparse), more), sparse


def _transform(features: FeatureMap, Z: Matrix, more: Float64Array | None) -> Float64Array:
    if isinstance(Z, SparseRows):
        raise TypeError("this bank takes dense rows")
    return transform(features, Z if more is None else np.concatenate([Z, more], axis=1))


def as_sparse(X: Matrix) -> SparseRows:
    """Return the rows without their zeros."""
    if isinstance(X, SparseRows):
        return X
    row, column = np.nonzero(X)
    stop = np.cumsum(np.bincount(row, minlength=len(X)))
    start = np.concatenate([np.zeros(1, np.int64), stop[:-1]])[: len(stop)]
    return SparseRows(start, stop, column.astype(np.int32), X[row, column], X.shape[1])
