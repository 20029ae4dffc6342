"""The inputs of a bank's learners: shared features, and sparse rows if these are wide.

Features are computed from dense rows of at most MAX_WIDTH columns as they are, and from sparse rows
and wider dense ones after hashing (`hashing`). Diagonal learners see wide rows themselves.
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
    """An immutable copy, for `inputs_of`."""

    features: FeatureMap
    moments: Moments | None  # of hashed columns; None if rows are narrow


class Inputs:
    """The feature map of a bank, and the hashing of wide rows.

    columns: number of columns of dense rows; None for sparse rows.
    seed: of the random features.
    extra: number of columns that the bank adds to rows.
    """

    def __init__(self, columns: int | None, seed: int, extra: int = 0) -> None:
        self.wide = columns is None or columns > MAX_WIDTH
        width = WIDTH if columns is None or columns > MAX_WIDTH else columns
        self.features = draw_features(width + extra, seed)
        self.hashed = HashedColumns() if self.wide else None

    def absorb(
        self, X: Matrix, extra: Float64Array | None = None
    ) -> tuple[Float64Array, SparseRows | None]:
        """Return features (n, D), and sparse rows if rows are wide; hashed columns are counted.

        X: n prepared rows.
        extra: (n, extra) columns that the bank adds.
        """
        sparse = as_sparse(X) if self.hashed is not None else None
        Z = X if self.hashed is None or sparse is None else self.hashed.absorb(sparse)
        return _transform(self.features, Z, extra), sparse

    def view(self) -> InputView:
        """Return an immutable copy, for `inputs_of`."""
        return InputView(self.features, None if self.hashed is None else self.hashed.view())

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays; the seed determines the features."""
        return {} if self.hashed is None else self.hashed.state()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        if self.hashed is not None:
            self.hashed.restore(state)


def inputs_of(
    view: InputView, X: Matrix, extra: Float64Array | None = None
) -> tuple[Float64Array, SparseRows | None]:
    """Return what `Inputs.absorb` would return for each row, if it came next."""
    if view.moments is None:
        return _transform(view.features, X, extra), None
    sparse = as_sparse(X)
    return _transform(view.features, hashed_and_standardised(view.moments, sparse), extra), sparse


def _transform(features: FeatureMap, Z: Matrix, extra: Float64Array | None) -> Float64Array:
    if isinstance(Z, SparseRows):
        raise TypeError("this bank takes dense rows")
    return transform(features, Z if extra is None else np.concatenate([Z, extra], axis=1))


def as_sparse(X: Matrix) -> SparseRows:
    """Return dense or sparse rows as sparse rows, dense ones without zeros."""
    if isinstance(X, SparseRows):
        return X
    row, column = np.nonzero(X)
    stop = np.cumsum(np.bincount(row, minlength=len(X)))
    start = np.concatenate([np.zeros(1, np.int64), stop[:-1]])[: len(stop)]
    return SparseRows(start, stop, column.astype(np.int32), X[row, column], X.shape[1])
