"""Checks of a saved ASSET head: its iterates, and the map from rows to random features."""

import numpy as np

from wolfstream.service.heads.saved_arrays import (
    Arrays,
    SavedHead,
    check_counts,
    check_floats,
    check_numbers,
    check_shape,
    n_saved_rows,
    require,
    shape_of,
)
from wolfstream.service.heads.saved_numbers import (
    ANY,
    COUNT,
    FROM_ZERO,
    POSITIVE,
    SUM,
    WIDTH,
    Bounds,
)
from wolfstream.service.heads.saved_rows import check_rows

# Not every larger integer is a 64-bit float.
_LARGEST_COUNT = 2.0**53
_MACHINE_SUMS = ("rest", "before")
_MACHINE_NUMBERS = (
    *("scale", "square_norm", "b", "scale_sum", "b_sum", "b_before", "moved", "factor"),
)
_PROGRESS = tuple(
    f"progress_{name}"
    for name in ("steps", "square_norms", "loss", "target", "weight", "square_weight")
)

ASSET_NUMBERS: Bounds = (
    (r"(course\d+_)?progress_steps", COUNT),
    (r"(course\d+_)?(progress_\w+|square_norm|weight)", FROM_ZERO),
    (r"(course\d+_)?(direction|rest|before|b|b_sum|b_before|scale|scale_sum|moved|factor)", SUM),
    (r"lost", FROM_ZERO),
    (r"auto_gamma", WIDTH),
    (r"target_scale", (ANY, POSITIVE)),
)


def check_asset(saved: SavedHead) -> None:
    """Raise WrongArrays unless the iterates of a head fit its feature map and its rows."""
    check_rows(saved)
    if "direction" in saved.arrays:
        _check_machines(saved.arrays, saved.blank, saved.n_classes, saved.dimension)
        _check_kind_of_rows(saved.arrays, saved.sparse)


def _check_machines(
    arrays: Arrays, empty: Arrays, n_classes: int | None, dimension: int | None
) -> None:
    """Check the iterates, one machine for each class, and the feature map."""
    check_counts(arrays, 1, n_classes if n_classes is not None else 0)
    require(shape_of("direction", arrays)[:1] != (), "direction", "has no machines")
    machines, width = (*shape_of("direction", arrays), 0)[:2]
    require(machines > int(arrays["counts"][0]), "direction", "has too few machines")
    courses = [name.removesuffix("direction") for name in empty if name.endswith("direction")]
    for course in courses:
        _check_course(course, arrays, empty, (machines, width))
    if "lost" in empty:
        check_shape("lost", arrays, (len(courses),))
        check_floats("lost", arrays)
    check_shape("target_scale", arrays, (2,))
    check_floats("target_scale", arrays)
    if "frequency" in arrays:
        # The map has spare rows for features that may come.
        check_shape("frequency", arrays, (None, width))
        check_shape("phase", arrays, (width,))
    if "whitening" in arrays:
        landmarks = n_saved_rows("landmarks", arrays)
        check_shape("whitening", arrays, (landmarks, width))
        check_floats("whitening", arrays)
    if "width" in arrays:
        check_shape("width", arrays, (2,))
        check_numbers("width", arrays, None)
        columns, sparse = (int(number) for number in arrays["width"])
        require(columns == width and sparse < 2, "width", "is not the width of the machines")
    for name in ("frequency", "phase", "origin"):
        if name in arrays:
            check_floats(name, arrays)
    if "origin" in arrays and arrays["origin"].size:
        check_shape("origin", arrays, (dimension,))


def _check_kind_of_rows(arrays: Arrays, sparse: bool) -> None:
    """Check that the feature map, if there is one, suits the model's rows, dense or sparse."""
    what = "is of another kind of rows than the model's"
    if "frequency" in arrays:
        require((arrays["origin"].size == 0) == sparse, "origin", what)
        if not sparse:
            check_shape("frequency", arrays, (len(arrays["origin"]), None))
    if "whitening" in arrays:
        require(("landmarks_indptr" in arrays) == sparse, "landmarks", what)
    if "width" in arrays:
        require(bool(arrays["width"][1]) == sparse, "width", what)


def _check_course(course: str, arrays: Arrays, empty: Arrays, shape: tuple[int, int]) -> None:
    """Check the iterates of one course, given the prefix of their names."""
    averages = len(empty[f"{course}rest"]) == len(empty[f"{course}direction"])
    check_shape(f"{course}direction", arrays, shape)
    for name in _MACHINE_SUMS:
        check_shape(course + name, arrays, (shape[0] if averages else 0, shape[1]))
    for name in _MACHINE_NUMBERS:
        check_shape(course + name, arrays, (shape[0],))
    for name in _PROGRESS:
        check_shape(course + name, arrays, (1,))
    check_shape(f"{course}weight", arrays, (2,))
    for name in ("direction", *_MACHINE_SUMS, *_MACHINE_NUMBERS, *_PROGRESS, "weight"):
        check_floats(course + name, arrays)
    for name in ("direction", *_MACHINE_SUMS, *_MACHINE_NUMBERS, "weight"):
        # Only a model with one machine may lack the score of a row.
        require(not np.isnan(arrays[course + name]).any(), course + name, "has numbers missing")
    steps = arrays[f"{course}progress_steps"][0]
    require(0.0 <= steps <= _LARGEST_COUNT, f"{course}progress_steps", "is not a number of steps")
