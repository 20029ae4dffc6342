"""The features of one learner's rows: a map that is made of the first rows and then grows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import (
    FeatureKind,
    FeatureMap,
    check_kernel,
    dimension_of,
    make_map,
    map_arrays,
    map_from_arrays,
    map_nbytes,
    transform,
    widened,
)
from wolfstream.solver.asset.identity import IdentityMap, transform_present
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import Matrix, SparseRows

# How many rows' features are computed at a time.
BLOCK_ROWS = 256
# Fewer sparse rows with identity features, because a block has a column for each feature in them.
SPARSE_BLOCK_ROWS = 64


class GrowingFeatures:
    """The feature map of a learner, None until its first rows.

    The number of identity features is the largest feature number of the sparse rows so far, or up
    to a quarter more.

    kind, kernel, dimension, seed: see `features.make_map`.

    Raises ValueError for features that do not exist for the kernel, and for a dimension below 1.
    """

    def __init__(self, kind: FeatureKind, kernel: Kernel, dimension: int, seed: int) -> None:
        check_kernel(kind, kernel)
        if dimension < 1:
            raise ValueError(f"dimension is {dimension}; it must be at least 1")
        self.kind, self.kernel, self.dimension, self.seed = kind, kernel, dimension, seed
        self.map: FeatureMap | None = None

    @property
    def width(self) -> int:
        """D, the number of columns of the features; 0 before the map is made."""
        return 0 if self.map is None else dimension_of(self.map)

    @property
    def nbytes(self) -> int:
        """The bytes of the map's arrays."""
        return 0 if self.map is None else map_nbytes(self.map)

    def make(self, X: Matrix, cut: float) -> None:
        """Make the map of these rows, replacing any earlier one.

        cut: of `nystrom.nystrom_map`.
        """
        self.map = make_map(self.kind, self.kernel, X, self.dimension, self.seed, cut)

    def widen(self, X: Matrix) -> None:
        """Append columns for new features of sparse rows."""
        assert self.map is not None
        self.map = widened(self.map, X)

    def blocks(self, X: Matrix, count: int) -> list[slice]:
        """Return slices of `count` rows whose features are computed at a time."""
        by_columns = self.kind == "identity" and isinstance(X, SparseRows)
        rows = SPARSE_BLOCK_ROWS if by_columns else BLOCK_ROWS
        return [slice(start, start + rows) for start in range(0, count, rows)]

    def transform(self, X: Matrix) -> tuple[Float64Array, NDArray[np.int64] | None]:
        """Return the features of rows and their columns, the arguments of `learner.Asset.step`.

        Identity features of sparse rows have only the columns with an entry; otherwise columns is
        None, for all.
        """
        if isinstance(self.map, IdentityMap) and isinstance(X, SparseRows):
            return transform_present(self.map, X)
        assert self.map is not None
        return transform(self.map, X), None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which `restore` makes the map again."""
        return {} if self.map is None else map_arrays(self.map)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue with the map of a learner with the same parameters."""
        self.map = map_from_arrays(self.kind, self.kernel, self.seed, arrays)
