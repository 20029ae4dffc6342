"""Checks of a saved bank's arrays about earlier labels, before compiled code reads them."""

from wolfstream.service.heads.saved_arrays import Arrays, WrongArrays, check_names, require
from wolfstream.service.heads.saved_numbers import (
    COUNT,
    FROM_ZERO,
    MAY_BE_MISSING,
    PLACE,
    POSITIVE,
    SHARE,
    Bounds,
    Numbers,
)
from wolfstream.solver.stream.label_past import CALIBRATION, PREFIX, LabelPast

_CALIBRATION = f"{PREFIX}{CALIBRATION}"

PAST_NUMBERS: Bounds = (
    (r"past_losses_recent", MAY_BE_MISSING),
    (r"past_losses_count", COUNT),
    (r"past_recent", Numbers(0.0, 2.0**64)),
    (r"past_last", PLACE),
    (r"past_(table|share|stay|scale)", FROM_ZERO),
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
    past, counts = LabelPast(regression=n_classes is None, always=False), f"{PREFIX}classes"
    if (
        counts not in past_arrays
        or past_arrays[counts].shape != (1,)
        or past_arrays[counts].dtype.kind != "i"
    ):
        raise WrongArrays(f"its array {counts} is missing, or has another type")
    classes = int(past_arrays[counts][0])
    require(classes == (n_classes or 0), counts, "does not have the number of classes")
    past.meet(classes)
    blank = {
        name: array for name, array in past.state().items() if not name.startswith(_CALIBRATION)
    }
    check_names(past_arrays, blank)
    for name, array in blank.items():
        same = past_arrays[name].dtype == array.dtype and past_arrays[name].shape == array.shape
        require(same, name, f"has the shape {past_arrays[name].shape} or another type")
    next_loss = f"{PREFIX}losses_next"
    inside = 0 <= past_arrays[next_loss][0] <= len(past_arrays[f"{PREFIX}losses_recent"])
    require(inside, next_loss, "is out of range")
    require(past_arrays[f"{PREFIX}total"][0] >= 0, f"{PREFIX}total", "is below zero")
    if n_classes is None:
        require(past_arrays[f"{PREFIX}seen"][0] >= 0, f"{PREFIX}seen", "is below zero")
    elif f"{PREFIX}last" in past_arrays:
        is_class = -1 <= past_arrays[f"{PREFIX}last"][0] < classes
        require(is_class, f"{PREFIX}last", "names an unknown class")
        same, every = past_arrays[f"{PREFIX}stay"].tolist()
        require(0.0 <= same <= every, f"{PREFIX}stay", "counts more labels than came")
