"""Checks of a saved bank's arrays, before compiled code reads them.

The arrays of a bank depend on its spec. So a saved bank is compared with a new bank of the same
spec: it must have the same arrays, of the same types and, except where samples extend them, shapes.
Class codes and indices must be in range. The same holds for its arrays about earlier labels; its
trees are checked in `saved_trees`.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.saved_arrays import (
    ANY,
    COUNT,
    FROM_ZERO,
    MAY_BE_MISSING,
    PLACE,
    POSITIVE,
    SHARE,
    Arrays,
    Bounds,
    Numbers,
    SavedHead,
    WrongArrays,
    check_names,
    require,
)
from wolfstream.solver.adaptive.label_past import CALIBRATION, PREFIX, LabelPast
from wolfstream.solver.adaptive.ridge import CHUNK, YOUNG
from wolfstream.solver.adaptive.skewed_targets import FIRST, FirstSamples
from wolfstream.solver.adaptive.target_scale import Units
from wolfstream.solver.prepare.bends import is_bend

# Arrays that samples extend -> the axis along which they do.
_GROWING = {
    r"ridge\d+_gains": 1,
    r"endless_(said|y)": 0,
    r"(diagonal|texts)_\w+": 0,
    r"early_(rows|codes|y|weight)": 0,
}
# Patterns of those that hold rows until a chunk ends.
_OF_CHUNKS = (r"ridge\d+_gains", r"endless_(said|y)")
# Arrays of learners' earlier states -> their number of dimensions. In a new bank they are empty.
_EARLIER_STATES = {
    r"endless\d+_W": 4,
    r"bayes_earlier_sums": 5,
    r"(endless\d+|bayes_earlier)_(beta|curvature)": 2,
}
_EARLIER_BAYES = ("bayes_earlier_sums", "bayes_earlier_beta", "bayes_earlier_curvature")
BANK_NUMBERS: Bounds = (
    (r"(hashed|lags|target)_(window_)?(weight|square|count)", FROM_ZERO),
    (r"(hashed|lags|target)_unit", FROM_ZERO),
    (r"last", MAY_BE_MISSING),
    (r"losses_recent", MAY_BE_MISSING),
    (r"losses_count", COUNT),
    (r"neighbours_(weight|counts)", FROM_ZERO),
    (r"endless\d+(_own)?_evidence", (FROM_ZERO, COUNT)),
    (r"endless\d+_mean", (ANY, COUNT)),
    (r"endless\d+_(table|advantage)", FROM_ZERO),
    (r"(endless\d+|bayes_earlier|combination)_(curvature|labels|factor)", POSITIVE),
    (r"combination_(square|memory|step|counts)", FROM_ZERO),
    (r"combination_(kept|weight|noise)", SHARE),
    (r"target_units", (ANY, POSITIVE, FROM_ZERO, ANY, ANY)),
    (r"early_codes", MAY_BE_MISSING),
    (r"early_weight", FROM_ZERO),
    (r"(diagonal|texts)_(G|square)", FROM_ZERO),
    (r"diagonal_entries", COUNT),
)
# Arrays of class codes -> the least code allowed.
_CODES = {"endless_y": 0, "endless_said": 0, "neighbours_said": 0}
_NO_ANSWERS: NDArray[np.int64] = np.empty(0, np.int64)


def check_bank(saved: SavedHead, blank_of: Callable[[int | None, int, int], Arrays]) -> None:
    """Raise WrongArrays unless the arrays of a bank fit each other.

    Args:
        saved: the saved head.
        blank_of: returns the arrays of a new bank of the same spec; see
            `solver.adaptive.bank.BankLearner.blank`.
    """
    plain, arrays, n_classes = saved.plain, saved.arrays, saved.n_classes
    if plain["begun"] is not True:
        if arrays or plain["begun"] is not False:
            raise WrongArrays("its bank has arrays before its first row")
        return
    if isinstance(plain["columns"], bool) or plain["columns"] != saved.width:
        raise WrongArrays("the number of columns of its bank is not that of its rows")
    if plain.get("texts", 0) != saved.texts:
        raise WrongArrays("the number of texts of its bank is not that of its rows")
    blank = blank_of(saved.width, saved.texts, n_classes or 0)
    check_names(arrays, blank)
    for name, array in arrays.items():
        _check_form(name, array, blank[name])
    for prefix in ("diagonal_", "texts_"):
        if len({len(array) for name, array in arrays.items() if name.startswith(prefix)}) > 1:
            raise WrongArrays(f"its arrays {prefix}* differ in length")
    for name in filter(re.compile(r"endless\d+_W").fullmatch, arrays):
        others = (name.removesuffix("W") + field for field in ("beta", "curvature"))
        if {arrays[other].shape for other in others} != {arrays[name].shape[:2] or (0,)}:
            raise WrongArrays(f"its array {name} does not fit the learners of its bank")
    answers = arrays.get("neighbours_said", _NO_ANSWERS)  # absent if the spec has no neighbours
    if n_classes is None and not np.array_equal(answers, blank.get("neighbours_said", _NO_ANSWERS)):
        raise WrongArrays("its array neighbours_said names classes, but it learns numbers")
    _check_numbers(arrays, n_classes)


def _check_form(name: str, array: NDArray[Any], blank: NDArray[Any]) -> None:
    """Compare type and shape with those of a new bank, except along an axis that samples extend."""
    shape, wanted = list(array.shape), list(blank.shape)
    axis = next((axis for pattern, axis in _GROWING.items() if re.fullmatch(pattern, name)), None)
    if axis is not None and len(shape) == len(wanted):
        length = shape.pop(axis)
        wanted.pop(axis)
        if name.startswith("diagonal_") and not length:
            raise WrongArrays(f"its array {name} is empty")
    dimensions = next(
        (n for pattern, n in _EARLIER_STATES.items() if re.fullmatch(pattern, name)), 0
    )
    has_states = len(array) > 0 and array.ndim == dimensions
    if array.dtype != blank.dtype or (shape != wanted and not has_states):
        raise WrongArrays(f"its array {name} has the shape {array.shape} or another type")


def _check_numbers(arrays: Arrays, n_classes: int | None) -> None:
    """Check class codes, indices and counts."""
    counts = arrays["counts"]
    if counts[0] < 1:
        raise WrongArrays("its array counts has no samples, but its bank has begun")
    if counts.min() < 0 or (n_classes is not None and counts[1] != n_classes):
        raise WrongArrays("its array counts does not have the number of classes")
    _check_chunk(arrays, int(counts[0]))
    if n_classes is None:
        _check_first(arrays, int(counts[0]))
    if not 0 <= arrays["losses_next"][0] <= len(arrays["losses_recent"]):
        raise WrongArrays("its array losses_next is out of range")
    if "neighbours_stored" in arrays and arrays["neighbours_stored"][0] < 0:
        raise WrongArrays("its array neighbours_stored is below zero")
    if "bayes_sums" in arrays:
        _check_bayes(arrays)
    if n_classes is None:
        return
    for name, least in _CODES.items():
        if name in arrays and not _name_classes(arrays[name], least, n_classes):
            raise WrongArrays(f"its array {name} names an unknown class")
    target = arrays.get("neighbours_target", np.zeros(0))
    if not _name_classes(target, 0, n_classes) or (target != np.floor(target)).any():
        raise WrongArrays("its array neighbours_target names an unknown class")


def _check_first(arrays: Arrays, samples: int) -> None:
    waiting = samples if samples < FIRST else 0
    if any(len(arrays[f"early_{field}"]) != waiting for field in FirstSamples._fields):
        raise WrongArrays("its arrays early_* do not hold its first samples")
    units = Units(*arrays["target_units"].tolist())
    with np.errstate(all="ignore"):
        largest = units.unscaled(np.array([math.inf, -math.inf]))
    if units.bend and not (is_bend(units.bend) and np.isfinite(largest).all()):
        raise WrongArrays("its array target_units has an impossible logarithm")


def _check_bayes(arrays: Arrays) -> None:
    if (arrays["bayes_sums"][..., 0] < 0.0).any():
        raise WrongArrays("its array bayes_sums has weights below zero")
    if arrays["bayes_rows"][0] != arrays["counts"][0]:
        raise WrongArrays("its array bayes_rows differs from its number of samples")
    sums, beta, curvature = (arrays[name] for name in _EARLIER_BAYES)
    if len(sums) or len(beta) or len(curvature):
        if {beta.shape, curvature.shape} != {sums.shape[:2]}:
            raise WrongArrays("the shapes of its arrays bayes_earlier_* do not fit each other")
        if sums.shape[1:] != arrays["bayes_sums"].shape:
            raise WrongArrays("its array bayes_earlier_sums does not fit the learners of its bank")
        if (sums[..., 0] < 0.0).any():
            raise WrongArrays("its array bayes_earlier_sums has weights below zero")


def _check_chunk(arrays: Arrays, samples: int) -> None:
    """Raise WrongArrays if more rows wait for the end of a chunk than the chunk has.

    There may be fewer: after a merge, none wait. The gains of the first samples wait for longer.
    """
    for pattern in _OF_CHUNKS:
        most = samples if samples < YOUNG and pattern.startswith("ridge") else samples % CHUNK
        for name in filter(re.compile(pattern).fullmatch, arrays):
            if arrays[name].shape[_GROWING[pattern]] > most:
                raise WrongArrays(f"its array {name} has more rows of a chunk than its samples")


def _name_classes(codes: NDArray[Any], least: int, n_classes: int) -> bool:
    return bool(((codes >= least) & (codes < n_classes)).all())


_CALIBRATION = f"{PREFIX}{CALIBRATION}"

PAST_NUMBERS: Bounds = (
    (r"past_losses_recent", MAY_BE_MISSING),
    (r"past_losses_count", COUNT),
    (r"past_recent", Numbers(0.0, 2.0**64)),
    (r"past_last", PLACE),
    (r"past_(table|share|stay|scale|repeated)", FROM_ZERO),
    (r"past_moving", SHARE),
    (r"past_combination_(curvature|labels)", POSITIVE),
    (r"past_(combination|mixture)_(square|memory|error|step|counts)", FROM_ZERO),
    (r"past_(combination|mixture)_(weight|noise)", SHARE),
)


def calibration_of_past(arrays: Arrays) -> Arrays:
    """Return from a bank's arrays the calibration of predictions without earlier labels."""
    return {
        name.removeprefix(_CALIBRATION): array
        for name, array in arrays.items()
        if name.startswith(_CALIBRATION)
    }


def check_past(arrays: Arrays, n_classes: int | None) -> None:
    """Raise WrongArrays unless the arrays about earlier labels fit each other.

    The calibration among them is checked with the others, in `saved_calibration`.

    Args:
        arrays: the arrays about earlier labels.
        n_classes: the number of known classes; None for regression.
    """
    past_arrays = {
        name: array for name, array in arrays.items() if not name.startswith(_CALIBRATION)
    }
    class_count = f"{PREFIX}classes"
    if (
        class_count not in past_arrays
        or past_arrays[class_count].shape != (1,)
        or past_arrays[class_count].dtype.kind != "i"
    ):
        raise WrongArrays(f"its array {class_count} is missing, or has another type")
    classes = int(past_arrays[class_count][0])
    require(classes == (n_classes or 0), class_count, "does not have the number of classes")
    new_past = LabelPast(regression=n_classes is None, always=False)
    new_past.meet(classes)
    new_arrays = {
        name: array for name, array in new_past.state().items() if not name.startswith(_CALIBRATION)
    }
    check_names(past_arrays, new_arrays)
    for name, array in new_arrays.items():
        fits = past_arrays[name].dtype == array.dtype and past_arrays[name].shape == array.shape
        require(fits, name, f"has the shape {past_arrays[name].shape} or another type")
    next_loss = f"{PREFIX}losses_next"
    inside = 0 <= past_arrays[next_loss][0] <= len(past_arrays[f"{PREFIX}losses_recent"])
    require(inside, next_loss, "is out of range")
    require(past_arrays[f"{PREFIX}total"][0] >= 0, f"{PREFIX}total", "is below zero")
    if n_classes is None:
        require(past_arrays[f"{PREFIX}seen"][0] >= 0, f"{PREFIX}seen", "is below zero")
    elif f"{PREFIX}last" in past_arrays:
        is_class = -1 <= past_arrays[f"{PREFIX}last"][0] < classes
        require(is_class, f"{PREFIX}last", "names an unknown class")
        repeats, labels = past_arrays[f"{PREFIX}stay"].tolist()
        require(0.0 <= repeats <= labels, f"{PREFIX}stay", "counts more labels than came")
