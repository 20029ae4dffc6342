"""Checks of a saved state's arrays against each other, before compiled code reads them.

Compiled code does not check its indices: a model file in which one points elsewhere could read or
write any memory. A checksum shows that a file is as it was written, not who wrote it.

What is checked, by the names that the learners give their arrays: every array has the type and the
number of dimensions that it must have; arrays of the same things are equally long; numbers that
name a row, a slot, a class or a column exist.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]

# The code of a slot from which a sample was removed.
_FREE = -1

_MACHINE_SUMS = ("rest", "before")
_MACHINE_NUMBERS = (
    *("scale", "square_norm", "b", "scale_sum", "b_sum", "b_before", "moved", "factor"),
)
_PROGRESS = tuple(f"progress_{name}" for name in ("steps", "square_norms", "loss", "target"))
# Earlier versions had no weights.
_PROGRESS_OF_WEIGHTS = ("progress_weight", "progress_square_weight")
# Of samples that have weights, and the rows that these belong to.
_WEIGHTS = {
    "inverse_weight": "rows",
    "y_weight": "rows",
    "auto_y_weight": "auto_rows",
    "past_weight": "past_X",
    "window_weight": "window_X",
}
_ROWS = ("rows", "auto_rows", "window_X", "landmarks", "fit.X")
_OF_PROBLEMS = ("sizes", "q", "steps")
_OF_MEMBERS = ("alpha", "gradient", "sign", "column")


class WrongArrays(ValueError):
    """The arrays of a state do not belong together; the message says which."""


def check_arrays(
    arrays: Arrays, empty: Arrays, n_classes: int | None, dimension: int | None
) -> None:
    """Raise WrongArrays unless the arrays of a head belong together.

    empty: those of the same head that has learned nothing. n_classes: that the head has met; None
    where it learns numbers. dimension: of the model's rows.
    """
    for name, array in arrays.items():
        _require(array.dtype.kind in "biuf" and array.dtype.isnative, name, "is not of numbers")
    if "widths" in arrays:
        _check_widths(arrays, n_classes, dimension)
        if "search_errors" in arrays:
            _check_search(arrays, n_classes, dimension)
        if "moved_seen" in arrays:  # earlier versions watched nothing
            _check_moves(arrays, n_classes)
        # Stored samples have their time as one more coordinate.
        dimension = None if dimension is None else dimension + 1
    for name in arrays:
        if name.endswith("_indptr"):
            _check_sparse(name.removesuffix("_indptr"), arrays, dimension)
        elif name in ("rows", "auto_rows", "window_X", "landmarks"):
            _check_shape(name, arrays, (None, dimension))
    for rows, labels in (("rows", "y"), ("auto_rows", "auto_y"), ("window_X", "window_y")):
        if labels in arrays:
            _check_shape(labels, arrays, (_n_rows(rows, arrays),))
            if n_classes is not None:
                _check_numbers(labels, arrays, n_classes)
    for name in arrays.keys() & _WEIGHTS.keys():
        _check_weights(name, arrays, _n_rows(_WEIGHTS[name], arrays))
    if "codes" in arrays or "column" in arrays:
        _check_stored_samples(arrays, n_classes, dimension)
    if "direction" in arrays:
        _check_machines(arrays, empty, n_classes, dimension)
    if "fit.X" in arrays:
        _check_fit(arrays, dimension)


def _check_stored_samples(arrays: Arrays, n_classes: int | None, dimension: int | None) -> None:
    """A set of samples, and a problem on them for each pair of classes.

    Earlier versions kept kernel values, "gram", which are not read.
    """
    _check_counts(arrays, 3, n_classes)
    sparse = "rows_indptr" in arrays
    _check_shape("origin", arrays, (0 if sparse else dimension,))
    classes, _, added = (int(count) for count in arrays["counts"])
    used = _n_rows("rows", arrays)
    for name in ("codes", "entered"):
        _check_shape(name, arrays, (used,))
    if "numbers" in arrays:  # earlier versions did not keep them
        _check_shape("numbers", arrays, (used,))
        seen = int(arrays["counts"][0 if n_classes is None else 1])
        _check_numbers("numbers", arrays, seen, least=_FREE)
    _check_numbers("codes", arrays, classes, least=_FREE)
    _check_numbers("entered", arrays, added)
    taken = arrays["codes"] != _FREE
    _require(
        len(np.unique(arrays["entered"][taken])) == taken.sum(), "entered", "has a number twice"
    )
    problems = math.comb(max(classes, 2), 2)
    for name in _OF_PROBLEMS:
        _check_shape(name, arrays, (problems,))
    if "indefinite" in arrays:  # earlier versions did not keep it
        _check_shape("indefinite", arrays, (problems,))
    _check_numbers("sizes", arrays, used + 1)
    _check_numbers("steps", arrays, None)
    members = int(arrays["sizes"].sum())
    for name in _OF_MEMBERS:
        _check_shape(name, arrays, (members,))
    _check_numbers("column", arrays, used)
    _require(taken[arrays["column"]].all(), "column", "has a slot that is free")
    for name in ("origin", "q", "alpha", "gradient", "sign"):
        _check_floats(name, arrays)
    ends = np.cumsum(arrays["sizes"])
    for column in np.split(arrays["column"], ends[:-1]):
        _require(len(np.unique(column)) == len(column), "column", "has a slot twice")


def _check_widths(arrays: Arrays, n_classes: int | None, dimension: int | None) -> None:
    """A kernel's widths, and the past that they are found by."""
    _check_shape("widths", arrays, (3,))
    _check_floats("widths", arrays)
    gamma, horizon, centre = arrays["widths"].tolist()
    _require(gamma > 0.0 and horizon > 0.0 and centre >= 0.0, "widths", "has numbers below zero")
    _check_shape("past_seen", arrays, (1,))
    _check_numbers("past_seen", arrays, None)
    _check_shape("past_X", arrays, (None, dimension))
    _check_floats("past_X", arrays)
    for name in ("past_time", "past_codes"):
        _check_shape(name, arrays, (len(arrays["past_X"]),))
    _check_numbers("past_codes", arrays, n_classes)
    _check_numbers("past_time", arrays, None)
    time, seen = arrays["past_time"], int(arrays["past_seen"][0])
    _require(bool((np.diff(time) > 0).all()), "past_time", "is not in order")
    last = int(time[-1]) + 1 if len(time) else 0
    _require(last == seen, "past_seen", "is not one more than the last number of past_time")


def _check_search(arrays: Arrays, n_classes: int | None, dimension: int | None) -> None:
    """The samples of a search for widths that goes on, and what it has computed."""
    _check_shape("search_X", arrays, (None, dimension))
    for name in ("search_time", "search_codes"):
        _check_shape(name, arrays, (len(arrays["search_X"]),))
        _check_numbers(name, arrays, None)
    _check_numbers("search_codes", arrays, n_classes)
    seen = int(arrays["past_seen"][0])
    _check_numbers("search_time", arrays, seen)
    _check_shape("search_errors", arrays, (None,))
    for name in ("search_X", "search_errors"):
        _check_floats(name, arrays)


def _check_moves(arrays: Arrays, n_classes: int | None) -> None:
    """What a set said of late, and what the labels were."""
    _check_shape("moved_seen", arrays, (1,))
    _check_numbers("moved_seen", arrays, None)
    seen = int(arrays["past_seen"][0])
    _require(int(arrays["moved_seen"][0]) == seen, "moved_seen", "is not that of past_seen")
    _check_shape("moved_table", arrays, (None, None))
    classes, labels = _shape("moved_table", arrays)
    _require(classes == labels, "moved_table", "is not square")
    _check_shape("moved_advantage", arrays, (1,))
    for name in ("moved_table", "moved_advantage"):
        _check_floats(name, arrays)
    _require(classes <= (n_classes or 0), "moved_table", "has too many classes")
    _check_shape("moved_said", arrays, (None,))
    _check_shape("moved_y", arrays, _shape("moved_said", arrays))
    _check_numbers("moved_said", arrays, n_classes, least=-1)
    _check_numbers("moved_y", arrays, n_classes)


def _check_machines(
    arrays: Arrays, empty: Arrays, n_classes: int | None, dimension: int | None
) -> None:
    """Iterates on features, a machine for each class, and the map to the features."""
    _check_counts(arrays, 1, n_classes if n_classes is not None else 0)
    _require(_shape("direction", arrays)[:1] != (), "direction", "has no machines")
    machines, width = (*_shape("direction", arrays), 0)[:2]
    _require(machines > int(arrays["counts"][0]), "direction", "has too few machines")
    courses = [name.removesuffix("direction") for name in empty if name.endswith("direction")]
    for course in courses:
        _check_course(course, arrays, empty, (machines, width))
    if "lost" in empty:
        _check_shape("lost", arrays, (len(courses),))
        _check_floats("lost", arrays)
    _check_shape("target_scale", arrays, (2,))
    _check_floats("target_scale", arrays)
    if "frequency" in arrays:
        # It has room for features that are still to be met.
        _check_shape("frequency", arrays, (None, width))
        _check_shape("phase", arrays, (width,))
    if "whitening" in arrays:
        landmarks = _n_rows("landmarks", arrays)
        _check_shape("whitening", arrays, (landmarks, width))
        # An estimator's `fit` makes it of numbers half as long.
        single = arrays["whitening"].dtype == np.float32
        _require(single or _is_double("whitening", arrays), "whitening", "is not of floats")
    if "width" in arrays:
        _check_shape("width", arrays, (2,))
        _check_numbers("width", arrays, None)
        columns, sparse = (int(number) for number in arrays["width"])
        _require(columns == width and sparse < 2, "width", "is not that of the machines")
    for name in ("frequency", "phase", "origin"):
        if name in arrays:
            _check_floats(name, arrays)
    if "origin" in arrays and arrays["origin"].size:
        _check_shape("origin", arrays, (dimension,))


def _check_course(course: str, arrays: Arrays, empty: Arrays, shape: tuple[int, int]) -> None:
    """The iterates of one rule of steps, in arrays whose names begin so."""
    averages = len(empty[f"{course}rest"]) == len(empty[f"{course}direction"])
    _check_shape(f"{course}direction", arrays, shape)
    for name in _MACHINE_SUMS:
        _check_shape(course + name, arrays, (shape[0] if averages else 0, shape[1]))
    for name in _MACHINE_NUMBERS:
        _check_shape(course + name, arrays, (shape[0],))
    for name in _PROGRESS:
        _check_shape(course + name, arrays, (1,))
    for name in _PROGRESS_OF_WEIGHTS:
        if course + _PROGRESS_OF_WEIGHTS[0] in arrays:
            _check_shape(course + name, arrays, (1,))
            _check_floats(course + name, arrays)
    _check_shape(f"{course}weight", arrays, (2,))
    for name in ("direction", *_MACHINE_SUMS, *_MACHINE_NUMBERS, *_PROGRESS, "weight"):
        _check_floats(course + name, arrays)


def _check_weights(name: str, arrays: Arrays, samples: int) -> None:
    """A number above zero for each of so many samples."""
    _check_shape(name, arrays, (samples,))
    _check_floats(name, arrays)
    weight = arrays[name]
    _require(bool((np.isfinite(weight) & (weight > 0.0)).all()), name, "is not above zero")


def _check_fit(arrays: Arrays, dimension: int | None) -> None:
    """A kernel expansion."""
    _check_shape("fit.X", arrays, (None, dimension))
    _check_shape("fit.dual_coef", arrays, (len(arrays["fit.X"]),))
    _check_shape("fit.origin", arrays, (dimension,))
    for name in ("fit.X", "fit.dual_coef", "fit.origin", "fit.beta"):
        _check_floats(name, arrays)


def _check_counts(arrays: Arrays, n: int, n_classes: int | None) -> None:
    _check_shape("counts", arrays, (n,))
    _check_numbers("counts", arrays, None)
    same = n_classes is None or int(arrays["counts"][0]) == n_classes
    _require(same, "counts", "does not have the number of classes")


def _check_sparse(name: str, arrays: Arrays, dimension: int | None) -> None:
    """Rows in compressed form: where each begins and ends, its columns and its numbers."""
    ends, indices = arrays[f"{name}_indptr"], arrays.get(f"{name}_indices")
    _require(indices is not None, f"{name}_indices", "is missing")
    assert indices is not None
    _check_shape(f"{name}_width", arrays, (1,))
    _check_numbers(f"{name}_width", arrays, None)
    width = int(arrays[f"{name}_width"][0])
    _require(width <= (dimension or 0), f"{name}_width", "is more than the model has")
    _check_shape(f"{name}_indptr", arrays, (None,))
    _check_numbers(f"{name}_indptr", arrays, len(indices) + 1)
    ordered = len(ends) > 0 and ends[0] == 0 and bool((np.diff(ends) >= 0).all())
    _require(ordered and ends[-1] <= len(indices), f"{name}_indptr", "is not in order")
    _check_shape(f"{name}_indices", arrays, (None,))
    _require(indices.dtype == np.int32, f"{name}_indices", "is not of 32-bit integers")
    _check_numbers(f"{name}_indices", arrays, width)
    _check_shape(f"{name}_data", arrays, (len(indices),))
    _check_floats(f"{name}_data", arrays)


def _n_rows(name: str, arrays: Arrays) -> int:
    if name in arrays:
        return len(arrays[name])
    _require(f"{name}_indptr" in arrays, name, "is missing")
    return len(arrays[f"{name}_indptr"]) - 1


def _check_numbers(name: str, arrays: Arrays, below: int | None, least: int = 0) -> None:
    """Whole numbers of at least zero, or another number, and below a bound if there is one."""
    array = arrays[name]
    whole = array.dtype.kind == "i"
    _require(whole and (array.size == 0 or array.min() >= least), name, "has numbers below zero")
    if below is not None and array.size:
        _require(array.max() < below, name, f"has numbers above {below - 1}")


def _check_floats(name: str, arrays: Arrays) -> None:
    _require(name in arrays, name, "is missing")
    _require(_is_double(name, arrays), name, "is not of 64-bit floats")


def _is_double(name: str, arrays: Arrays) -> bool:
    return bool(arrays[name].dtype == np.float64)


def _check_shape(name: str, arrays: Arrays, shape: tuple[int | None, ...]) -> None:
    """A shape; None allows any length, and a dimension that is not known yet."""
    given = _shape(name, arrays)
    fits = len(given) == len(shape) and all(
        wanted is None or length == wanted for length, wanted in zip(given, shape, strict=True)
    )
    _require(fits, name, f"has the shape {given}")


def _shape(name: str, arrays: Arrays) -> tuple[int, ...]:
    _require(name in arrays, name, "is missing")
    return arrays[name].shape


def _require(holds: bool | np.bool_, name: str, what: str) -> None:
    if not holds:
        raise WrongArrays(f"its array {name} {what}")


def check_state(
    plain: Mapping[str, Any], arrays: Arrays, heads: Collection[str], empty: Arrays
) -> None:
    """Raise WrongArrays unless the arrays of a model's state belong together.

    plain: of the state, whose `dimension`, `sequence` and `names` are checked as well. empty: the
    arrays of a model of this spec that has learned nothing.
    """
    dimension, names = plain["dimension"], plain.get("names")
    if type(plain["sequence"]) is not int or plain["sequence"] < 0:
        raise WrongArrays("its sequence is no whole number")
    if dimension is not None and (type(dimension) is not int or dimension < 0):
        raise WrongArrays("its dimension is no whole number")
    if names is not None and len(set(names)) != dimension:
        raise WrongArrays("its names are not as many as its features")
    if "prepare_mean" in arrays:
        _check_shape("prepare_mean", arrays, (None,))
        dimension = len(arrays["prepare_mean"])
    for head in heads:
        classes = plain["heads"][head].get("classes")
        n_classes = None if classes is None else len(classes)
        of_head = arrays_of(head, arrays)
        check_arrays(of_head, arrays_of(head, empty), n_classes, dimension)
        if "sequences" in of_head:  # earlier versions did not keep them
            _check_sequences(of_head, plain["sequence"])


def _check_sequences(arrays: Arrays, sequence: int) -> None:
    """From which samples on the sequence is larger than their number, and by how much."""
    _check_shape("sequences", arrays, (2, None))
    _check_numbers("sequences", arrays, None)
    first, offset = arrays["sequences"]
    rises = bool((np.diff(first) > 0).all() and (np.diff(offset) > 0).all())
    counted = len(first) > 0 and first[0] + offset[0] > 0 and first[-1] + offset[-1] <= sequence
    _require(rises and counted, "sequences", "are not those of samples")


def check_norms(arrays: Arrays, heads: Collection[str], limit: float) -> None:
    """Raise WrongArrays where a stored row is larger than one that could have been learned.

    limit: on ||x||^2 of each row by itself, up to which no kernel value overflows.
    """
    for head in heads:
        of_head = arrays_of(head, arrays)
        for name in _ROWS:
            norms = _square_norms(name, of_head)
            _require(bool((norms <= limit).all()), name, "has rows too large for the kernel")


def _square_norms(name: str, arrays: Arrays) -> NDArray[np.float64]:
    """||x||^2 of each row, (n,), of arrays that were checked; NaN where a number is."""
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
    """The arrays of one head, by the names that it gives them."""
    prefix = f"{head}."
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
