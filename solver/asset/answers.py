"""The predictions of ASSET for samples just before it learns them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array


class AssetAnswers(NamedTuple):
    """The predictions for n samples, each made just before the sample was learned."""

    # (n,) class numbers, -1 while fewer than two classes were known; in regression targets, NaN for
    # the first sample of the stream.
    prediction: NDArray[Any]
    # (n,) for at most two classes after the last sample, otherwise (n, classes); NaN while there
    # was no model yet. In regression the prediction.
    decision: Float64Array


def regression_answers(parts: list[Float64Array], untrained: bool) -> AssetAnswers:
    """Join predicted targets of consecutive parts.

    parts: (n, 1) each.
    untrained: whether there was no sample before.
    """
    values = np.concatenate(parts)[:, 0]
    values[: int(untrained)] = np.nan
    return AssetAnswers(values, values.copy())


def classification_answers(
    parts: list[Float64Array], y: NDArray[np.int64], n_before: int, n_classes: int
) -> AssetAnswers:
    """Join scores of consecutive parts.

    parts: (n, classes known by then) each.
    y: (n,) class numbers of all samples.
    n_before: how many classes were known before all samples.
    n_classes: how many are known after them.
    """
    n_known = np.maximum(np.maximum.accumulate(y) + 1, n_before)
    n_known = np.concatenate([[n_before], n_known])[:-1]
    scores = np.full((len(n_known), n_classes), np.nan)
    start = 0
    for part in parts:
        rows, columns = part.shape
        scores[start : start + rows, :columns] = part
        start += rows
    untrained = n_known < 2
    scores[np.arange(n_classes) >= n_known[:, None]] = np.nan
    prediction = np.full(len(scores), -1, np.int64)
    if n_classes <= 2:
        decision = scores[:, -1] if n_classes == 2 else np.full(len(scores), np.nan)
        prediction[~untrained] = decision[~untrained] > 0.0
        return AssetAnswers(prediction, np.where(untrained, np.nan, decision))
    scores[untrained] = np.nan
    prediction[~untrained] = np.nanargmax(scores[~untrained], axis=1)
    return AssetAnswers(prediction, scores)
