"""Checks of a saved working set: its samples, the problems on them, and the search for widths."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.saved_arrays import (
    ANY,
    COUNT,
    FROM_ZERO,
    PLACE,
    POSITIVE,
    WEIGHT,
    WIDTH,
    Arrays,
    Bounds,
    Numbers,
    SavedHead,
    check_counts,
    check_floats,
    check_numbers,
    check_shape,
    n_saved_rows,
    require,
    shape_of,
)
from wolfstream.service.heads.saved_rows import check_rows
from wolfstream.solver.stream.relabelling import LONGEST_WAIT
from wolfstream.solver.working_set.auto_widths import MOST_BESIDE
from wolfstream.solver.working_set.past import EARLIER, RECENT

# The code of a slot whose sample was removed.
_FREE = -1
# Names of the arrays with an element for each problem, each member, and each slot of a tube.
_OF_PROBLEMS = ("sizes", "q", "steps", "indefinite")
_OF_MEMBERS = ("alpha", "gradient", "sign", "column")
_OF_TUBE = ("beta", "value", "target")


class _SampleCounts(NamedTuple):
    """The numbers of classes, samples seen, and samples ever stored."""

    classes: int
    seen: int
    added: int


SET_NUMBERS: Bounds = (
    (r"auto_gamma", WIDTH),
    (r"widths", (WIDTH, Numbers(1.0), COUNT)),
    (r"q|alpha", WEIGHT),
    (r"sign", Numbers(-1.0, 1.0)),
    (r"codes|numbers|moved_said", PLACE),
    (r"moved_(table|advantage)", FROM_ZERO),
    (r"target_scale", (ANY, POSITIVE)),
)


def check_set(saved: SavedHead, *, of_numbers: bool) -> None:
    """Raise WrongArrays unless a set's samples fit its problems, and its widths its past samples.

    Args:
        saved: the saved head.
        of_numbers: whether targets are numbers instead of labels.
    """
    check_rows(saved)
    arrays, n_classes = saved.arrays, saved.n_classes
    if "widths" in arrays:
        _check_widths(arrays, n_classes, saved.dimension)
        if "search_due" in arrays:
            _check_search(arrays, n_classes, saved.dimension)
        _check_moves(arrays, n_classes)
    if of_numbers:
        check_shape("target_scale", arrays, (2,))  # their centre and unit
        check_floats("target_scale", arrays)
    if "codes" in arrays or "column" in arrays:
        if of_numbers:
            _check_stored_numbers(arrays, saved.stored_dimension)
        else:
            _check_stored_samples(arrays, n_classes, saved.stored_dimension)


def _check_stored_samples(arrays: Arrays, n_classes: int | None, dimension: int | None) -> None:
    """Check a set of labelled samples, with a problem for each pair of classes."""
    check_counts(arrays, 3, n_classes)
    classes, seen, added = (int(count) for count in arrays["counts"])
    taken = _check_samples(arrays, dimension, _SampleCounts(classes, seen, added))
    problems = math.comb(max(classes, 2), 2)
    for name in _OF_PROBLEMS:
        check_shape(name, arrays, (problems,))
    check_numbers("sizes", arrays, len(taken) + 1)
    check_numbers("steps", arrays, None)
    members = int(arrays["sizes"].sum())
    for name in _OF_MEMBERS:
        check_shape(name, arrays, (members,))
    check_numbers("column", arrays, len(taken))
    require(taken[arrays["column"]].all(), "column", "has a slot that is free")
    for name in ("q", "alpha", "gradient", "sign"):
        check_floats(name, arrays)
    ends = np.cumsum(arrays["sizes"])
    for column in np.split(arrays["column"], ends[:-1]):
        require(len(np.unique(column)) == len(column), "column", "has a slot twice")


def _check_stored_numbers(arrays: Arrays, dimension: int | None) -> None:
    """Check a set of samples whose targets are numbers, and the weight of each."""
    check_counts(arrays, 3, None)
    seen, added, _ = (int(count) for count in arrays["counts"])
    taken = _check_samples(arrays, dimension, _SampleCounts(1, seen, added))
    for name in _OF_TUBE:
        check_shape(name, arrays, (len(taken),))
        check_floats(name, arrays)
    require(not arrays["beta"][~taken].any(), "beta", "has a slot that is free")


def _check_samples(
    arrays: Arrays, dimension: int | None, counts: _SampleCounts
) -> NDArray[np.bool_]:
    """Check the stored samples of either kind of set; return whether each slot is taken."""
    sparse = "rows_indptr" in arrays
    check_shape("origin", arrays, (0 if sparse else dimension,))
    check_floats("origin", arrays)
    used = n_saved_rows("rows", arrays)
    for name in ("codes", "entered", "numbers"):
        check_shape(name, arrays, (used,))
    check_numbers("numbers", arrays, counts.seen, least=_FREE)
    check_numbers("codes", arrays, counts.classes, least=_FREE)
    check_numbers("entered", arrays, counts.added)
    taken = np.asarray(arrays["codes"] != _FREE)
    require(
        len(np.unique(arrays["entered"][taken])) == taken.sum(), "entered", "has a number twice"
    )
    return taken


def _check_widths(arrays: Arrays, n_classes: int | None, dimension: int | None) -> None:
    """Check a kernel's widths, and the past samples that they are derived from."""
    check_shape("widths", arrays, (3,))
    check_floats("widths", arrays)
    gamma, horizon, centre = arrays["widths"].tolist()
    require(gamma > 0.0 and horizon > 0.0 and centre >= 0.0, "widths", "has numbers below zero")
    check_shape("past_seen", arrays, (1,))
    check_numbers("past_seen", arrays, None)
    check_shape("past_X", arrays, (None, dimension))
    check_floats("past_X", arrays)
    for name in ("past_time", "past_codes"):
        check_shape(name, arrays, (len(arrays["past_X"]),))
    check_numbers("past_codes", arrays, n_classes)
    check_numbers("past_time", arrays, None)
    time, seen = arrays["past_time"], int(arrays["past_seen"][0])
    require(bool((np.diff(time) > 0).all()), "past_time", "is not in order")
    last = int(time[-1]) + 1 if len(time) else 0
    require(last == seen, "past_seen", "does not follow the last number of past_time")


def _check_search(arrays: Arrays, n_classes: int | None, dimension: int | None) -> None:
    """Check the samples of a running search for widths, and when it ends."""
    check_shape("search_X", arrays, (None, dimension))
    n = len(arrays["search_X"])
    require(0 < n <= RECENT + EARLIER, "search_X", "has no rows, or more than a search uses")
    for name in ("search_time", "search_codes"):
        check_shape(name, arrays, (n,))
    check_numbers("search_codes", arrays, n_classes)
    seen = int(arrays["past_seen"][0])
    check_numbers("search_time", arrays, seen)
    check_floats("search_X", arrays)
    check_shape("search_due", arrays, (1,))
    check_numbers("search_due", arrays, None)
    later = int(arrays["search_due"][0]) - seen
    require(0 < later <= MOST_BESIDE, "search_due", "is not soon after past_seen")


def _check_moves(arrays: Arrays, n_classes: int | None) -> None:
    """Check a set's recent predictions and their labels."""
    check_shape("moved_seen", arrays, (3,))
    check_numbers("moved_seen", arrays, None)
    seen = int(arrays["past_seen"][0])
    of_moves, moved, wait = arrays["moved_seen"].tolist()
    require(of_moves == seen, "moved_seen", "differs from past_seen")
    possible = moved <= seen and wait <= LONGEST_WAIT
    require(possible, "moved_seen", "has a move that has not come, or waits for too long")
    check_shape("moved_table", arrays, (None, None))
    classes, labels = shape_of("moved_table", arrays)
    require(classes == labels, "moved_table", "is not square")
    check_shape("moved_advantage", arrays, (1,))
    for name in ("moved_table", "moved_advantage"):
        check_floats(name, arrays)
    require(classes <= (n_classes or 0), "moved_table", "has too many classes")
    check_shape("moved_said", arrays, (None,))
    check_shape("moved_y", arrays, shape_of("moved_said", arrays))
    check_numbers("moved_said", arrays, n_classes, least=-1)
    check_numbers("moved_y", arrays, n_classes)
