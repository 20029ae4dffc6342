"""Checks of the saved calibrations of heads; see `engine.saved_arrays`.

They are compared with those of heads of the same spec that have learned nothing: names, types and
shapes, but for what grows with samples or classes. Beside that, numbers that name a class exist,
and numbers are finite: a model would take others, and break at a later sample.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from wolfstream.service.engine.saved_arrays import arrays_of
from wolfstream.service.heads.array_checks import Arrays, WrongArrays
from wolfstream.service.heads.calibration import of_calibration
from wolfstream.service.heads.saved_past import calibration_of_past

_RANKING = {"ranking", "ranking_bins", "ranking_codes"}
_GROWING = {"recent", "waiting", "waiting_codes", "codes", "scores", *_RANKING}
_MOST_KEPT = 1000
_NOT_NEGATIVE = {"sums", "bins", "widths", "recent", "ranking"}
# Probabilities, and what is computed from them, are rounded.
_LEAST = -1e-9


def check_calibrations(
    plain: Mapping[str, Any], arrays: Arrays, heads: Collection[str], empty: Arrays
) -> None:
    """Raise WrongArrays unless the arrays of each head's calibration belong together.

    plain, arrays: of a model's state. empty: the arrays of a model of its spec that has learned
    nothing. Older versions saved none.
    """
    for head in heads:
        own = arrays_of(head, arrays)
        for found in (of_calibration(own), calibration_of_past(own)):
            if found:
                classes = plain["heads"][head].get("classes")
                blank = of_calibration(arrays_of(head, empty))
                _check(found, blank, None if classes is None else len(classes))


def _check(arrays: Arrays, blank: Arrays, n_classes: int | None) -> None:
    # Older versions did not count how probabilities rank.
    older = _RANKING if not arrays.keys() & _RANKING else set()
    saved = blank.keys() - older
    _require((arrays.keys() - {"scaling"}) == saved, "", "has other arrays than it saves")
    for name, array in arrays.items():
        wanted = blank.get(name, np.empty(0))
        fits = array.dtype == wanted.dtype and array.ndim == wanted.ndim
        fits = fits and (name in {*_GROWING, "scaling"} or array.shape == wanted.shape)
        _require(fits, name, f"has the shape {array.shape} or another type")
    _check_values(arrays, n_classes is not None)
    judged, seen, held = arrays["samples"].tolist()
    _require(0 <= judged <= seen and 0 <= held <= _MOST_KEPT, "samples", "counts what was not")
    wanted_shape = (len(blank["recent"]), min(judged, _MOST_KEPT))
    _require(arrays["recent"].shape == wanted_shape, "samples", "counts others than recent")
    _require(len(arrays["waiting"]) == held, "samples", "counts others than waiting")
    if n_classes is not None:
        _check_decisions("waiting", "waiting_codes", arrays, n_classes)
        _check_decisions("scores", "codes", arrays, n_classes)
        columns = arrays["scores"].shape[1]
        _require(arrays["codes"].max(initial=-1) < columns, "codes", "names a class without score")
        of_label = arrays["scores"][np.arange(len(arrays["codes"])), arrays["codes"]]
        _require(bool(np.isfinite(of_label).all()), "scores", "has none of a label")
        fits = "scaling" not in arrays or len(arrays["scaling"]) == 1 + columns
        _require(fits, "scaling", "is not one of the scores")
        if "ranking" in arrays:
            _check_ranking(arrays, blank["ranking"].shape[-1], n_classes)


def _check_ranking(arrays: Arrays, n_bins: int, n_classes: int) -> None:
    """Each class that probabilities were of has as many counts, and the last rows have a bin."""
    counts, bins, codes = (arrays[name] for name in sorted(_RANKING))
    known, rows = bins.shape
    _require(known <= n_classes and rows <= _MOST_KEPT, "ranking_bins", "has too many bins")
    _require(counts.shape == (2, known, n_bins), "ranking", f"has the shape {counts.shape}")
    every, own = counts
    same = bool((every.sum(axis=1) == own.sum()).all() and (own <= every).all())
    _require(same, "ranking", "counts rows for one class that it does not for another")
    _require(len(codes) == rows, "ranking_codes", "is not as long as calibration_ranking_bins")
    inside = bool(((codes >= 0) & (codes < known)).all())
    _require(inside, "ranking_codes", "names a class that is not known")


def _check_values(arrays: Arrays, of_classes: bool) -> None:
    """Check that numbers are finite, and where they must be not below zero.

    Scores are -inf for a class of which nothing was known; sums of widths may overflow.
    """
    for name, array in arrays.items():
        finite = np.isfinite(array)
        if of_classes and name in {"scores", "waiting"}:
            finite |= np.isneginf(array)
        elif name == "widths":
            finite |= np.isposinf(array)
        _require(bool(finite.all()), name, "has numbers that are not finite")
    for name in arrays.keys() & _NOT_NEGATIVE:
        _require(bool((arrays[name] >= _LEAST).all()), name, "has numbers below zero")
    least = bool((arrays["waiting"] >= 0.0).all())
    _require(of_classes or least, "waiting", "has numbers below zero")


def _check_decisions(scores: str, codes: str, arrays: Arrays, n_classes: int) -> None:
    """Scores have a column for each class at most, and each row has a label."""
    rows, columns = arrays[scores].shape
    known = arrays[codes]
    _require(columns <= n_classes and rows <= _MOST_KEPT, scores, "has too many scores")
    _require(len(known) == rows, codes, f"is not as long as calibration_{scores}")
    inside = bool(((known >= 0) & (known < n_classes)).all())
    _require(inside, codes, "names a class that is not known")


def _require(holds: bool, name: str, what: str) -> None:
    if not holds:
        raise WrongArrays(f"its array calibration_{name} {what}")
