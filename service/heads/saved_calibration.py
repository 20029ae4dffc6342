"""A head's calibration in its saved state, and its check, before compiled code reads it.

A calibration is compared with that of a new head of the same spec: it must have the same arrays, of
the same types and, except where samples or classes extend them, shapes. Class codes must be in
range, and values finite; otherwise a model would accept the state and fail at a later sample.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.saved_arrays import Arrays, Bounds, Numbers, WrongArrays
from wolfstream.service.heads.saved_bank import calibration_of_past
from wolfstream.solver.calibration.conformal import RECENT

_PREFIX = "calibration_"
_RANKING = {"ranking", "ranking_bins", "ranking_codes"}
# Arrays whose shapes depend on the samples.
_GROWING = {"recent", "waiting", "waiting_codes", "codes", "scores", *_RANKING}
_NOT_NEGATIVE = {"sums", "bins", "widths", "recent", "ranking"}
# Rounding may leave probabilities, and values computed from them, slightly below zero.
_ROUNDING = -1e-9
# The score of a class that was unknown then is -inf. Bounded, because scores are squared.
CALIBRATION_NUMBERS: Bounds = (
    (r"(past_)?calibration_(scores|waiting)", Numbers(-1e150, 1e150, below=True)),
    (r"(past_)?calibration_widths", Numbers(0.0, above=True)),
)


def with_calibration(state: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return a calibration's arrays under the names that they have in a head's state."""
    return {f"{_PREFIX}{name}": array for name, array in state.items()}


def calibration_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the calibration's arrays in a head's state; inverts `with_calibration`."""
    prefix = len(_PREFIX)
    return {name[prefix:]: array for name, array in arrays.items() if name.startswith(_PREFIX)}


def without_calibration(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the other arrays of a head's state."""
    return {name: array for name, array in arrays.items() if not name.startswith(_PREFIX)}


def check_calibration(arrays: Arrays, blank: Arrays, n_classes: int | None) -> None:
    """Raise WrongArrays unless the arrays of a head's calibration fit each other.

    Args:
        arrays: the arrays of the saved head.
        blank: the arrays of a new head of the same spec.
        n_classes: the number of known classes; None for regression.
    """
    of_blank, saved = calibration_arrays(blank), calibration_arrays(arrays)
    if saved or of_blank:
        _check(saved, of_blank, n_classes)
    if without_past := calibration_of_past(arrays):
        _check(without_past, of_blank, n_classes)


def _check(arrays: Arrays, blank: Arrays, n_classes: int | None) -> None:
    _require(
        (arrays.keys() - {"scaling"}) == blank.keys(), "", "arrays are not those that a head saves"
    )
    for name, array in arrays.items():
        wanted = blank.get(name, np.empty(0))
        fits = array.dtype == wanted.dtype and array.ndim == wanted.ndim
        fits = fits and (name in {*_GROWING, "scaling"} or array.shape == wanted.shape)
        _require(fits, name, f"has the shape {array.shape} or another type")
    _check_values(arrays, n_classes is not None)
    judged, seen, n_waiting = arrays["samples"].tolist()
    counted = 0 <= judged <= seen and 0 <= n_waiting <= RECENT
    _require(counted, "samples", "has impossible counts")
    wanted_shape = (len(blank["recent"]), min(judged, RECENT))
    _require(arrays["recent"].shape == wanted_shape, "samples", "does not count the recent ones")
    _require(len(arrays["waiting"]) == n_waiting, "samples", "does not count the waiting ones")
    if n_classes is not None:
        _check_decisions("waiting", "waiting_codes", arrays, n_classes)
        _check_decisions("scores", "codes", arrays, n_classes)
        columns = arrays["scores"].shape[1]
        _require(
            arrays["codes"].max(initial=-1) < columns, "codes", "names a class without a score"
        )
        label_scores = arrays["scores"][np.arange(len(arrays["codes"])), arrays["codes"]]
        _require(bool(np.isfinite(label_scores).all()), "scores", "lacks the score of a label")
        fits = "scaling" not in arrays or len(arrays["scaling"]) == 1 + columns
        _require(fits, "scaling", "does not fit the scores")
        _check_ranking(arrays, blank["ranking"].shape[-1], n_classes)


def _check_ranking(arrays: Arrays, n_bins: int, n_classes: int) -> None:
    """Check that all classes count the same rows, and that each of the last rows has a bin."""
    counts, bins, codes = (arrays[name] for name in sorted(_RANKING))
    n_known, rows = bins.shape
    _require(n_known <= n_classes and rows <= RECENT, "ranking_bins", "has too many bins")
    _require(counts.shape == (2, n_known, n_bins), "ranking", f"has the shape {counts.shape}")
    rows_of_all, rows_of_class = counts
    same = bool((rows_of_all.sum(axis=1) == rows_of_class.sum()).all())
    same = same and bool((rows_of_class <= rows_of_all).all())
    _require(same, "ranking", "counts different rows for different classes")
    _require(len(codes) == rows, "ranking_codes", "is not as long as calibration_ranking_bins")
    inside = bool(((codes >= 0) & (codes < n_known)).all())
    _require(inside, "ranking_codes", "names an unknown class")


def _check_values(arrays: Arrays, has_classes: bool) -> None:
    """Check that values are finite and, where they must be, not below zero.

    The score of a class that was unknown then is -inf; sums of widths may overflow to inf.
    """
    for name, array in arrays.items():
        finite = np.isfinite(array)
        if has_classes and name in {"scores", "waiting"}:
            finite |= np.isneginf(array)
        elif name == "widths":
            finite |= np.isposinf(array)
        _require(bool(finite.all()), name, "has numbers that are not finite")
    for name in arrays.keys() & _NOT_NEGATIVE:
        _require(bool((arrays[name] >= _ROUNDING).all()), name, "has numbers below zero")
    least = bool((arrays["waiting"] >= 0.0).all())
    _require(has_classes or least, "waiting", "has numbers below zero")


def _check_decisions(scores: str, codes: str, arrays: Arrays, n_classes: int) -> None:
    """Check that rows have at most one score per class, and a label each."""
    rows, columns = arrays[scores].shape
    values = arrays[codes]
    _require(columns <= n_classes and rows <= RECENT, scores, "has too many scores")
    _require(len(values) == rows, codes, f"is not as long as calibration_{scores}")
    inside = bool(((values >= 0) & (values < n_classes)).all())
    _require(inside, codes, "names an unknown class")


def _require(holds: bool, name: str, what: str) -> None:
    if not holds:
        raise WrongArrays(f"its array calibration_{name} {what}")
