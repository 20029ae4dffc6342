"""Merging the calibrations of learners that learned parts of a stream into one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.classes import ClassCalibration
from wolfstream.solver.calibration.conformal import RECENT
from wolfstream.solver.calibration.ranking import Ranking, renumbered


def merge(
    merged: ClassCalibration,
    each: Sequence[ClassCalibration],
    class_codes: Sequence[NDArray[np.int64]],
    classes: int,
) -> None:
    """Let an empty calibration continue from several, all with equal weight.

    Totals are added, error rates and scalings averaged, and the last scores of all are kept, the
    same number from each. The scores are those of the parts' answers, so that the sets of a merged
    model, which knows more, are rather too large than too small. Waiting decisions are dropped.

    merged: the empty calibration, which is changed.
    each: the calibrations.
    class_codes: for each calibration, the numbers in the merged one of the classes that it has met.
    classes: how many the merged one has.
    """
    states = [(part.state(), order) for part, order in zip(each, class_codes, strict=True)]
    states = [(state, order) for state, order in states if state["samples"][0]]
    if not states:
        return
    samples = np.sum([state["samples"] for state, _ in states], axis=0)
    last = _last([state["recent"] for state, _ in states])
    rankings = [renumbered(_ranking(state), order, classes) for state, order in states]
    last_ranked = _last([ranking.bins for ranking in rankings])
    arrays: dict[str, NDArray[Any]] = {
        "samples": np.array([samples[0], samples[1], 0], np.int64),
        "sums": np.sum([state["sums"] for state, _ in states], axis=0),
        "bins": np.sum([state["bins"] for state, _ in states], axis=0),
        "misses": np.mean([state["misses"] for state, _ in states], axis=0),
        "recent": np.concatenate([state["recent"] for state, _ in states], axis=1)[:, last],
        "scores": np.concatenate([_reordered(s["scores"], order, classes) for s, order in states]),
        "codes": np.concatenate([order[state["codes"]] for state, order in states]),
        "waiting": np.empty((0, classes)),
        "waiting_codes": np.empty(0, np.int64),
        "ranking": np.sum([ranking.counts for ranking in rankings], axis=0),
        "ranking_bins": np.concatenate([ranking.bins for ranking in rankings], axis=1)[
            :, last_ranked
        ],
        "ranking_codes": np.concatenate([ranking.codes for ranking in rankings])[last_ranked],
    }
    scalings = [(s["scaling"], order) for s, order in states if "scaling" in s]
    if scalings:
        slope = np.mean([scaling[0] for scaling, _ in scalings])
        offsets = [_reordered(s[None, 1:], order, classes, 0.0)[0] for s, order in scalings]
        arrays["scaling"] = np.array([slope, *np.mean(offsets, axis=0)])
    merged.restore(arrays)


def _last(each: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the RECENT columns of all arrays (rows, n) that are last in their array.

    Their numbers count the columns of all arrays one after another.
    """
    ages = np.concatenate([np.arange(columns.shape[1])[::-1] for columns in each])
    return np.argsort(-ages, kind="stable")[-RECENT:]


def _ranking(state: Mapping[str, NDArray[Any]]) -> Ranking:
    return Ranking(state["ranking"], state["ranking_bins"], state["ranking_codes"])


def _reordered(
    scores: Float64Array, order: NDArray[np.int64], classes: int, unknown: float = -np.inf
) -> Float64Array:
    """Return (n, classes) scores with column j of `scores` at order[j], `unknown` elsewhere."""
    result = np.full((len(scores), classes), unknown)
    result[:, order[: scores.shape[1]]] = scores
    return result
