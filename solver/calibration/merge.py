"""One calibration of those of learners of parts of a stream."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.classes import ClassCalibration
from wolfstream.solver.calibration.conformal import RECENT


def merge(
    merged: ClassCalibration,
    each: Sequence[ClassCalibration],
    places: Sequence[NDArray[np.int64]],
    classes: int,
) -> None:
    """Have a calibration that knows nothing go on from several, all of equal weight.

    Totals are added; error rates and scalings are averaged; of recent scores there are as many of
    each as there is room for. What is measured is how good the parts' answers were, so that the
    sets of a merged model, which knows more, are rather too large than too small. Decisions that
    wait to be judged are left out.

    places: for each calibration, the numbers in the merged one of the classes that it has met.
    classes: of the merged one.
    """
    states = [(one.state(), order) for one, order in zip(each, places, strict=True)]
    states = [(state, order) for state, order in states if state["samples"][0]]
    if not states:
        return
    samples = np.sum([state["samples"] for state, _ in states], axis=0)
    arrays: dict[str, NDArray[Any]] = {
        "samples": np.array([samples[0], samples[1], 0], np.int64),
        "sums": np.sum([state["sums"] for state, _ in states], axis=0),
        "bins": np.sum([state["bins"] for state, _ in states], axis=0),
        "misses": np.mean([state["misses"] for state, _ in states], axis=0),
        "recent": _last([state["recent"] for state, _ in states]),
        "scores": np.concatenate([_moved(s["scores"], order, classes) for s, order in states]),
        "codes": np.concatenate([order[state["codes"]] for state, order in states]),
        "waiting": np.empty((0, classes)),
        "waiting_codes": np.empty(0, np.int64),
    }
    scalings = [(s["scaling"], order) for s, order in states if "scaling" in s]
    if scalings:
        slope = np.mean([scaling[0] for scaling, _ in scalings])
        offsets = [_moved(s[None, 1:], order, classes, 0.0)[0] for s, order in scalings]
        arrays["scaling"] = np.array([slope, *np.mean(offsets, axis=0)])
    merged.restore(arrays)


def _last(each: Sequence[Float64Array]) -> Float64Array:
    """(ROWS, at most RECENT) of the last columns of each, as many of one as of another."""
    ages = [np.arange(columns.shape[1])[::-1] for columns in each]
    order = np.argsort(-np.concatenate(ages), kind="stable")[-RECENT:]
    return np.concatenate(each, axis=1)[:, order]


def _moved(
    scores: Float64Array, order: NDArray[np.int64], classes: int, unknown: float = -np.inf
) -> Float64Array:
    """(n, classes) of scores (n, K): column j at order[j]."""
    result = np.full((len(scores), classes), unknown)
    result[:, order[: scores.shape[1]]] = scores
    return result
