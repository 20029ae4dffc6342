"""Checks that the arrays of a saved state fit each other, before compiled code reads them.

Compiled code does not check indices: a model file with an index out of range could make it read or
write any memory. A checksum proves that a file is as it was written, not who wrote it.

Arrays are known by the names that learners give them. Each must have the right type and number of
dimensions. Arrays about the same things must be equally long. Numbers that refer to a row, a slot,
a class or a column must be in range.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.engine.saved_asset import check_kind_of_rows, check_machines
from wolfstream.service.engine.saved_set import (
    check_moves,
    check_search,
    check_stored_numbers,
    check_stored_samples,
    check_target_scale,
    check_widths,
)
from wolfstream.service.heads.array_checks import (
    Arrays,
    WrongArrays,
    check_floats,
    check_numbers,
    check_shape,
    check_sparse,
    check_weights,
    n_saved_rows,
    require,
)
from wolfstream.solver.kernels.bandwidth import SAMPLES

# weights -> the rows that they belong to
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


def check_arrays(
    arrays: Arrays, empty: Arrays, n_classes: int | None, dimension: int | None
) -> None:
    """Raise WrongArrays unless the arrays of a head fit each other.

    Args:
        arrays: of the head, without its calibration.
        empty: the arrays of such a head that has learned nothing.
        n_classes: the number of classes that it has met; None if it learns numbers.
        dimension: of the model's rows; None before the first.
    """
    for name, array in arrays.items():
        require(array.dtype.kind in "biuf" and array.dtype.isnative, name, "is not of numbers")
    if "widths" in arrays:
        check_widths(arrays, n_classes, dimension)
        if "search_errors" in arrays:
            check_search(arrays, n_classes, dimension)
        check_moves(arrays, n_classes)
        # Stored samples have their time as another coordinate.
        dimension = None if dimension is None else dimension + 1
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
    # Of all heads, only a working set of numbers derives a scale from its first samples.
    predicts_numbers = "first_seen" in empty
    if predicts_numbers:
        check_target_scale(arrays)
    if "codes" in arrays or "column" in arrays:
        if predicts_numbers:
            check_stored_numbers(arrays, dimension)
        else:
            check_stored_samples(arrays, n_classes, dimension)
    if "direction" in arrays:
        check_machines(arrays, empty, n_classes, dimension)
    if "fit.X" in arrays:
        _check_fit(arrays, dimension)


def _check_first(prefix: str, arrays: Arrays, n_classes: int | None) -> None:
    """Check the number of first samples: all that are kept, or as many as were needed.

    With another number, the learner would derive its settings again, from a part of them.
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
    require(count == 0 or count >= needed, seen, "is too small for what was settled")


def _check_fit(arrays: Arrays, dimension: int | None) -> None:
    """Check the arrays of a kernel expansion."""
    check_shape("fit.X", arrays, (None, dimension))
    check_shape("fit.dual_coef", arrays, (len(arrays["fit.X"]),))
    check_shape("fit.origin", arrays, (dimension,))
    for name in ("fit.X", "fit.dual_coef", "fit.origin", "fit.beta"):
        check_floats(name, arrays)


def check_state(
    plain: Mapping[str, Any], arrays: Arrays, heads: Collection[str], empty: Arrays
) -> None:
    """Raise WrongArrays unless the arrays of a model's state fit each other.

    Args:
        plain: of the state. Its `dimension`, `sequence` and `names` are checked as well.
        arrays: of the state.
        heads: the names of the spec's heads.
        empty: the arrays of a model of this spec that has learned nothing.
    """
    dimension, names = plain["dimension"], plain.get("names")
    if type(plain["sequence"]) is not int or plain["sequence"] < 0:
        raise WrongArrays("its sequence is no whole number")
    if dimension is not None and (type(dimension) is not int or dimension < 0):
        raise WrongArrays("its dimension is no whole number")
    if names is not None and len(set(names)) != dimension:
        raise WrongArrays("its names are not as many as its features")
    if "prepare_mean" in arrays:
        check_shape("prepare_mean", arrays, (None,))
        dimension = len(arrays["prepare_mean"])
    for head in heads:
        classes = plain["heads"][head].get("classes")
        n_classes = None if classes is None else len(classes)
        own = arrays_of(head, arrays)
        check_arrays(own, arrays_of(head, empty), n_classes, dimension)
        if "direction" in own:
            check_kind_of_rows(own, sparse=names is not None)
        if "sequences" in own:
            _check_sequences(own, plain["sequence"])


def _check_sequences(arrays: Arrays, sequence: int) -> None:
    """Check the list of samples from which on sequences exceed counts, and by how much."""
    check_shape("sequences", arrays, (2, None))
    check_numbers("sequences", arrays, None)
    first, offset = arrays["sequences"]
    rises = bool((np.diff(first) > 0).all() and (np.diff(offset) > 0).all())
    counted = len(first) > 0 and first[0] + offset[0] > 0 and first[-1] + offset[-1] <= sequence
    require(rises and counted, "sequences", "are not those of samples")


def check_norms(arrays: Arrays, heads: Collection[str], limit: float) -> None:
    """Raise WrongArrays if a stored row is larger than any that could have been learned.

    limit: on ||x||^2 of each row, up to which no kernel value overflows.
    """
    for head in heads:
        own = arrays_of(head, arrays)
        for name in _ROWS:
            norms = _square_norms(name, own)
            require(bool((norms <= limit).all()), name, "has rows too large for the kernel")


def _square_norms(name: str, arrays: Arrays) -> NDArray[np.float64]:
    """Return ||x||^2 of each row, (n,), of checked arrays; NaN for a row that has a NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        if name in arrays:
            rows = arrays[name].astype(np.float64)
            return np.asarray(np.einsum("ij,ij->i", rows, rows))
        if f"{name}_indptr" not in arrays:
            return np.zeros(0)
        ends, squares = arrays[f"{name}_indptr"], arrays[f"{name}_data"] ** 2
        row = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        return np.bincount(row, squares[: ends[-1]], len(ends) - 1).astype(np.float64)


def arrays_of(head: str, arrays: Arrays) -> Arrays:
    """Return the arrays of one head, by the names that the head gives them."""
    prefix = f"{head}."
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
