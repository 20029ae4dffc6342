"""Scores by class, which accuracy hides if one class is far more frequent than the others."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.samples.labels import Label
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.ranking import RankingScores
from wolfstream.solver.stream.labels import text_of


def class_scores(
    labels: Sequence[Label | float],
    confusion: NDArray[np.int64],
    majority: float | None,
    ranked: RankingScores | None = None,
) -> dict[str, Any]:
    """Return scores as plain data; None where a divisor is zero or nothing is known.

        precision          share of a class's predictions that were correct
        recall             share of a class's samples that were predicted correctly
        f1                 harmonic mean of both
        balanced accuracy  mean recall of the classes that have come

    ROC AUC is the mean over classes. Average precision is too, except that for two classes it is
    that of the rarer class.

    Args:
        labels: the labels of the K classes.
        confusion: (K, K) counts, one row for each label and one column for each prediction; it may
            lack the last classes.
        majority: accuracy of always predicting the most frequent class.
        ranked: scores of `solver.calibration.ranking`; they may lack the last classes.
    """
    # A head that was trained from a file, or loaded, has predicted nothing yet.
    missing = len(labels) - len(confusion)
    confusion = np.pad(confusion, (0, missing)) if missing else confusion
    support, right = confusion.sum(axis=1), confusion.diagonal()
    predicted = confusion.sum(axis=0)
    recall = _shares(right, support)
    by_class = {
        "precision": _shares(right, predicted),
        "recall": recall,
        "f1": _shares(2 * right, support + predicted),
        "roc_auc": _padded(None if ranked is None else ranked.roc_auc, len(labels)),
        "average_precision": _padded(
            None if ranked is None else ranked.average_precision, len(labels)
        ),
    }
    columns = {name: _plain(values) for name, values in by_class.items()}
    precisions = by_class["average_precision"]
    if len(labels) == 2:
        precisions = precisions[[int(np.argmin(support))]]
    total = int(support.sum())
    return {
        "samples": total,
        "accuracy": int(right.sum()) / total if total else None,
        "majority": majority,
        "balanced_accuracy": _mean(recall),
        "roc_auc": _mean(by_class["roc_auc"]),
        "average_precision": _mean(precisions),
        "classes": {
            text_of(label): {
                **{name: column[k] for name, column in columns.items()},
                "support": int(support[k]),
            }
            for k, label in enumerate(labels)
        },
        "confusion": {"labels": list(labels), "counts": confusion.tolist()},
    }


def _shares(part: NDArray[np.int64], whole: NDArray[np.int64]) -> Float64Array:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


def _padded(values: Float64Array | None, classes: int) -> Float64Array:
    values = np.empty(0) if values is None else values
    return np.pad(values, (0, classes - len(values)), constant_values=np.nan)


def _plain(values: Float64Array) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def _mean(values: Float64Array) -> float | None:
    numbers = values[~np.isnan(values)]
    return float(numbers.mean()) if len(numbers) else None
