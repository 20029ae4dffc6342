"""The ridges of a dual, 1/(2 C w), and the precision of kernel values that they need."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import Precision, least_ridge, precision_for
from wolfstream.solver.rows.sample_weights import as_numbers
from wolfstream.solver.working_set.hessian import Ridge


class Ridges:
    """1/(2 C w) on the diagonal of A, for the samples of each class (`hessian.Ridge`).

    C: the cost, > 0.
    class_weight: weights > 0 by class number, to which those of new classes may be appended;
        further classes have weight 1.

    Raises ValueError for weights that are not above zero.
    """

    def __init__(self, C: float, class_weight: Sequence[float] | None = None) -> None:
        self.C = C
        self.class_weight = [] if class_weight is None else [float(w) for w in class_weight]
        if not all(weight > 0.0 for weight in self.class_weight):
            raise ValueError("class weights must be greater than zero")

    def precision(self, kernel: Kernel, largest_weight: float = 1.0) -> Precision:
        """Return the precision for the smallest ridge that a sample can have.

        largest_weight: the largest weight that a sample may have.
        """
        heaviest = max([1.0, largest_weight, *self.class_weight])
        return precision_for(kernel, 0.5 / (self.C * heaviest))

    def class_ridge(self, code: int) -> float:
        """Return 1/(2 C w) for samples of a class."""
        weight = self.class_weight[code] if code < len(self.class_weight) else 1.0
        return 0.5 / (self.C * weight)

    def class_ridges(self, count: int) -> Float64Array:
        """Return the ridges of the first classes, (count,)."""
        return np.array([self.class_ridge(code) for code in range(count)])

    def pair_ridge(self, a: int, b: int) -> Ridge:
        """Return the ridges of a pair of classes."""
        return Ridge(self.class_ridge(a), self.class_ridge(b))

    def inverse_weights(
        self, codes: NDArray[np.int64], weight: Float64Array | None, precision: Precision
    ) -> Float64Array:
        """Return 1 / weight, (n,), raised where the ridge would be too small for the precision.

        codes: (n,) int64 class numbers.
        weight: (n,) sample weights > 0; None if all are 1.
        """
        if weight is None:
            return as_numbers(None, len(codes))
        bound = least_ridge(precision) / self.class_ridges(int(codes.max(initial=0)) + 1)[codes]
        return np.maximum(1.0 / weight, np.minimum(bound, 1.0))
