"""Checks of the estimators' parameters, rows and targets; each raises ValueError."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from wolfstream.solver.kernels.functions import Kernel, largest_square_norm
from wolfstream.solver.rows.matrix import Matrix, SparseRows, square_norms, take_rows
from wolfstream.solver.rows.sample_weights import Weights

# Squares of larger weights, and of their reciprocals, could overflow when they are summed.
_LARGEST_WEIGHT = 1e12
# The largest gamma is the square of its reciprocal.
_SMALLEST_VALUE = 1e-50


class CountedSamples(NamedTuple):
    """The samples that count.

    rows: (n,) their numbers, ascending.
    weight: (n,) > 0; None if all count 1.
    """

    rows: NDArray[np.int64]
    weight: Weights

    def of(self, X: Matrix, y: NDArray[Any]) -> tuple[Matrix, NDArray[Any]]:
        """Return their rows and labels or targets."""
        return (X, y) if len(self.rows) == len(y) else (take_rows(X, self.rows), y[self.rows])


def counted(sample_weight: Any, n: int) -> CountedSamples:
    """Return which of n samples count, and how much, by scikit-learn's `sample_weight`.

    A sample of weight zero is left out. Raises ValueError if a weight is not a finite number,
    is below zero or beyond what can be learned, and where all are zero.
    """
    if sample_weight is None:
        return CountedSamples(np.arange(n), None)
    # One row for each weight: only their number is compared.
    weight = _check_sample_weight(
        sample_weight, np.empty((n, 0)), dtype=np.float64, ensure_non_negative=True
    )
    rows = np.flatnonzero(weight)
    if not len(rows):
        raise ValueError("sample_weight is zero for all samples: none is left to learn")
    positive = np.array(weight[rows])
    least, most = float(positive.min()), float(positive.max())
    if not (least >= 1.0 / _LARGEST_WEIGHT and most <= _LARGEST_WEIGHT):
        raise ValueError(
            f"sample_weight has values from {least:.3g} to {most:.3g}; they must be zero, or "
            f"between {1.0 / _LARGEST_WEIGHT:.0e} and {_LARGEST_WEIGHT:.0e}"
        )
    return CountedSamples(rows, None if np.all(positive == 1.0) else positive)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError, listing the choices, for a value that is not one of them."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(choices)}")


def check_integer(name: str, value: Any, least: int = 1) -> None:
    """Raise ValueError for a value that is not an integer >= least."""
    if not (isinstance(value, int | np.integer) and value >= least):
        raise ValueError(f"{name} is {value!r}; it must be an integer, at least {least}")


def check_positive(name: str, value: Any, other: str = "", *, infinite: bool = False) -> None:
    """Raise ValueError for a value that is not a number > 0, or is infinite and must not be.

    other: the alternative values of the parameter, for the message.
    """
    if not (is_finite(value) or (infinite and value == math.inf)) or value <= 0:
        kind = "number" if infinite else "finite number"
        raise ValueError(f"{name} is {value!r}; it must be {other}a {kind} above zero")


def check_contamination(value: Any) -> None:
    """Raise ValueError for a share of outliers that is neither "auto" nor in (0, 0.5]."""
    if value != "auto" and not (is_finite(value) and 0.0 < float(value) <= 0.5):
        raise ValueError(f"contamination is {value!r}; it must be 'auto' or in (0, 0.5]")


def is_finite(value: Any) -> bool:
    """Return whether this is a number and neither infinite nor NaN."""
    return isinstance(value, int | float | np.number) and math.isfinite(value)


def is_plain_matrix(X: Any, columns: int) -> bool:
    """Return whether X is a C-contiguous float64 array of such rows without infinite numbers."""
    if type(X) is not np.ndarray or X.dtype != np.float64 or X.ndim != 2:
        return False
    if X.shape[1] != columns or not len(X) or not X.flags.c_contiguous:
        return False
    return not np.isinf(X).any()


def are_plain_targets(y: Any, n: int, *, numeric: bool) -> bool:
    """Return whether y is an array of n finite float64 targets, or of n integers as labels."""
    if type(y) is not np.ndarray or y.shape != (n,):
        return False
    if numeric:
        return y.dtype == np.float64 and bool(np.isfinite(y).all())
    return y.dtype.kind in "iu"


def check_not_tiny(X: Matrix) -> None:
    """Raise ValueError for rows that are so close to zero that a kernel would not tell them apart.

    Rows that are all zero are no error.
    """
    values = X.values if isinstance(X, SparseRows) else X
    largest = float(np.abs(values).max(initial=0.0))
    if 0.0 < largest < _SMALLEST_VALUE:
        raise ValueError(
            f"no value is above {largest:.3g}, and products of values below {_SMALLEST_VALUE:.0e} "
            "are lost: scale the features"
        )


def check_norms(kernel: Kernel, X: Matrix) -> None:
    """Raise ValueError for rows whose kernel values would overflow."""
    with np.errstate(over="ignore"):
        square = square_norms(X)
    largest = largest_square_norm(kernel)
    wrong = np.flatnonzero(~(square <= largest))
    if len(wrong):
        other = ", or choose a smaller gamma or degree" if kernel.type == "polynomial" else ""
        raise ValueError(
            f"row {wrong[0]} has a norm above {math.sqrt(largest):.3g}, where the values of the "
            f"{kernel.type} kernel would overflow: scale the features{other}"
        )
