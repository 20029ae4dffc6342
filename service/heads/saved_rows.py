"""Checks of the rows in saved heads of several kinds, with their labels, weights and sequences.

Each array must have the right type and number of dimensions. Arrays about the same rows must have
the same length. Indices of rows, classes and columns must be in range.
"""

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.saved_arrays import (
    Arrays,
    SavedHead,
    check_floats,
    check_numbers,
    check_shape,
    check_sparse,
    check_weights,
    n_saved_rows,
    require,
)
from wolfstream.solver.kernels.bandwidth import SAMPLES

# array of weights -> array of its rows
_WEIGHTS = {
    "inverse_weight": "rows",
    "y_weight": "rows",
    "auto_y_weight": "auto_rows",
    "first_y_weight": "first_rows",
    "past_weight": "past_X",
    "window_weight": "window_X",
}
_ROWS = ("rows", "auto_rows", "first_rows", "window_X", "landmarks", "fit.X")
# Prefixes of the names of first samples' arrays; see `solver.rows.first_samples`.
_FIRST = ("", "auto_", "first_")
_LABELS = {"rows": "y", "auto_rows": "auto_y", "first_rows": "first_y", "window_X": "window_y"}


def check_rows(saved: SavedHead) -> None:
    """Raise WrongArrays unless the stored rows of a head fit their labels and weights."""
    arrays, n_classes, dimension = saved.arrays, saved.n_classes, saved.stored_dimension
    for name in arrays:
        if name.endswith("_indptr"):
            check_sparse(name.removesuffix("_indptr"), arrays, dimension)
        elif name in _ROWS and name != "fit.X":
            check_shape(name, arrays, (None, dimension))
    for rows, labels in _LABELS.items():
        if labels in arrays:
            check_shape(labels, arrays, (n_saved_rows(rows, arrays),))
            if n_classes is not None:
                check_numbers(labels, arrays, n_classes)
    for prefix in _FIRST:
        _check_first(prefix, arrays, n_classes)
    for name in arrays.keys() & _WEIGHTS.keys():
        check_weights(name, arrays, n_saved_rows(_WEIGHTS[name], arrays))
    if "sequences" in arrays:
        _check_sequences(arrays, saved.sequence)


def check_expansion(saved: SavedHead) -> None:
    """Raise WrongArrays unless the arrays of a kernel expansion, if it has one, fit each other."""
    check_rows(saved)
    arrays, dimension = saved.arrays, saved.dimension
    if "fit.X" not in arrays:
        return
    check_shape("fit.X", arrays, (None, dimension))
    check_shape("fit.dual_coef", arrays, (len(arrays["fit.X"]),))
    check_shape("fit.origin", arrays, (dimension,))
    for name in ("fit.X", "fit.dual_coef", "fit.origin", "fit.beta"):
        check_floats(name, arrays)


def _check_first(prefix: str, arrays: Arrays, n_classes: int | None) -> None:
    """Check the number of first samples: all those stored or, once dropped, as many as are needed.

    With another number the learner would derive its settings again, from a part of the samples.
    """
    seen, rows = f"{prefix}seen", f"{prefix}rows"
    if seen not in arrays:
        return
    check_shape(seen, arrays, (1,))
    check_numbers(seen, arrays, None)
    count = int(arrays[seen][0])
    if rows in arrays or f"{rows}_indptr" in arrays:
        require(count == n_saved_rows(rows, arrays), seen, f"is not the number of {rows}")
        require(f"{prefix}y" in arrays, f"{prefix}y", "is missing")
        return
    needed = SAMPLES if prefix or n_classes is None else 0
    if "landmarks" in arrays or "landmarks_indptr" in arrays:
        needed = max(needed, n_saved_rows("landmarks", arrays))
    require(count == 0 or count >= needed, seen, "is too small for the settings derived from it")


def _check_sequences(arrays: Arrays, sequence: int) -> None:
    """Check the array of `heads.set_view.Sequences`: first samples, and offsets from there on."""
    check_shape("sequences", arrays, (2, None))
    check_numbers("sequences", arrays, None)
    first, offset = arrays["sequences"]
    rises = bool((np.diff(first) > 0).all() and (np.diff(offset) > 0).all())
    counted = len(first) > 0 and first[0] + offset[0] > 0 and first[-1] + offset[-1] <= sequence
    require(rises and counted, "sequences", "are not sequences of samples")


def check_norms_of_rows(arrays: Arrays, limit: float) -> None:
    """Raise WrongArrays if a stored row is larger than any that could have been learned.

    Args:
        arrays: the arrays of a head, checked.
        limit: the largest ||x||^2 of a row for which no kernel value overflows.
    """
    for name in _ROWS:
        norms = _square_norms(name, arrays)
        require(bool((norms <= limit).all()), name, "has rows too large for the kernel")


def _square_norms(name: str, arrays: Arrays) -> NDArray[np.float64]:
    """Return ||x||^2 of each row, (n,); NaN for a row with a NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        if name in arrays:
            rows = arrays[name].astype(np.float64)
            return np.asarray(np.einsum("ij,ij->i", rows, rows))
        if f"{name}_indptr" not in arrays:
            return np.zeros(0)
        ends, squares = arrays[f"{name}_indptr"], arrays[f"{name}_data"] ** 2
        row = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        return np.bincount(row, squares[: ends[-1]], len(ends) - 1).astype(np.float64)
