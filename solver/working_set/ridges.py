"""The ridges of a dual, 1/(2 C w), and how exact kernel values must be for them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import Precision, least_ridge, precision_for
from wolfstream.solver.rows.sample_weights import as_numbers
from wolfstream.solver.working_set.hessian import Ridge


class Ridges:
    """The terms on the diagonal of A for the samples of each class; see `hessian.Ridge`.

    C: the cost. class_weight: weights > 0 by class number; classes beyond it have weight 1, and
        those to come may be appended. Raises ValueError for weights that are not above zero.
    """

    def __init__(self, C: float, class_weight: Sequence[float] | None = None) -> None:
        self.C = C
        self.class_weight = [] if class_weight is None else [float(w) for w in class_weight]
        if not all(weight > 0.0 for weight in self.class_weight):
            raise ValueError("class weights must be greater than zero")

    def precision(self, kernel: Kernel, largest_weight: float = 1.0) -> Precision:
        """Return the precision for the smallest ridge that a sample can have.

        largest_weight: the largest weight of a sample that may come.
        """
        heaviest = max([1.0, largest_weight, *self.class_weight])
        return precision_for(kernel, 0.5 / (self.C * heaviest))

    def of_class(self, code: int) -> float:
        """Return 1/(2 C w) for samples of a class."""
        weight = self.class_weight[code] if code < len(self.class_weight) else 1.0
        return 0.5 / (self.C * weight)

    def of_classes(self, count: int) -> Float64Array:
        """Return the ridges of the first classes, (count,)."""
        return np.array([self.of_class(code) for code in range(count)])

    def of_pair(self, a: int, b: int) -> Ridge:
        """Return the ridges of a pair of classes."""
        return Ridge(self.of_class(a), self.of_class(b))

    def inverse_weights(
        self, codes: NDArray[np.int64], weight: Float64Array | None, precision: Precision
    ) -> Float64Array:
        """Return 1 / weight of samples of classes, as far as the precision bears it, (n,).

        weight: (n,) > 0; None if all count 1.
        """
        if weight is None:
            return as_numbers(None, len(codes))
        bound = least_ridge(precision) / self.of_classes(int(codes.max(initial=0)) + 1)[codes]
        return np.maximum(1.0 / weight, np.minimum(bound, 1.0))
