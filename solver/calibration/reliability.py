"""How good probabilities are: log loss, Brier score, expected calibration error, and coverage.

    log loss     mean of -log p_y
    Brier score  mean of sum_k (p_k - [k = y])^2                                   (Brier 1950)
    ECE          sum over bins of |sum of p_max - number right| / n, rows in the bin of their p_max
                 by tenths                         (Naeini, Cooper and Hauskrecht 2015)

Each row is one column of numbers, `COLUMNS`; totals are sums of them, and of each bin of p_max.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.conformal import CONFIDENCES

BINS = 10
# A class that was given less, or that was not known yet, costs -log of this.
LEAST = 1e-15


class Judged(NamedTuple):
    """Of each of n rows, float64.

    log_loss, brier: as above. top: p_max. right: whether its class is the label. score: the
    conformal score 1 - p_y. covered, size: (confidences, n) whether sets had the label, and of how
    many classes they were.
    """

    log_loss: Float64Array
    brier: Float64Array
    top: Float64Array
    right: Float64Array
    score: Float64Array
    covered: Float64Array
    size: Float64Array

    def columns(self) -> Float64Array:
        """(rows, n), in this order."""
        return np.vstack([*self])


# The rows of `Judged.columns`.
LOG_LOSS, BRIER, TOP, RIGHT, SCORE, COVERED = range(6)
SIZE = COVERED + len(CONFIDENCES)
ROWS = SIZE + len(CONFIDENCES)


class Totals(NamedTuple):
    """Of all rows so far. sums: (ROWS,) of columns. bins: (3, BINS) count, sum p_max, right."""

    samples: int
    sums: Float64Array
    bins: Float64Array


def no_totals() -> Totals:
    """Before any row."""
    return Totals(0, np.zeros(ROWS), np.zeros((3, BINS)))


def judged(
    probability: Float64Array, codes: NDArray[np.int64], limits: Float64Array
) -> tuple[Judged, Float64Array]:
    """Return the scores of probabilities (n, K) for labels (n,); a label >= K is unknown.

    limits: (confidences,) conformal thresholds, of which each gives a set of all classes whose
    1 - p is at most that, and of the likeliest one. Also whether they cover, (confidences, n),
    were the likeliest class not in them for its own sake.
    """
    n, classes = probability.shape
    rows = np.arange(n)
    met = codes < classes
    label_probability = np.where(met, probability[rows, np.where(met, codes, 0)], 0.0)
    likeliest = np.argmax(probability, axis=1)
    top = probability[rows, likeliest]
    brier = np.square(probability).sum(axis=1) - 2.0 * label_probability + 1.0
    right = (likeliest == codes).astype(np.float64)
    score = 1.0 - label_probability
    plain = (score <= limits[:, None]).astype(np.float64)
    sizes = (1.0 - probability <= limits[:, None, None]).sum(axis=2, dtype=np.float64)
    log_loss = -np.log(np.maximum(label_probability, LEAST))
    covered = np.maximum(plain, right)
    return Judged(log_loss, brier, top, right, score, covered, np.maximum(sizes, 1.0)), plain


def added(totals: Totals, columns: Float64Array) -> Totals:
    """With the columns (ROWS, n) of more rows."""
    bins = totals.bins + _bins(columns)
    return Totals(totals.samples + columns.shape[1], totals.sums + columns.sum(axis=1), bins)


def summary(totals: Totals, recent: Float64Array) -> dict[str, Any]:
    """Return the scores as plain data, of all rows and of recent ones; None without rows."""
    over_all = _scores(totals.samples, totals.sums, totals.bins)
    recent_bins = _bins(recent)
    lately = _scores(recent.shape[1], recent.sum(axis=1), recent_bins)
    n, last = max(totals.samples, 1), max(recent.shape[1], 1)
    coverage = [
        {
            "confidence": confidence,
            "coverage": float(totals.sums[COVERED + i]) / n if totals.samples else None,
            "recent_coverage": float(recent[COVERED + i].sum()) / last if totals.samples else None,
            "mean_size": float(totals.sums[SIZE + i]) / n if totals.samples else None,
        }
        for i, confidence in enumerate(CONFIDENCES)
    ]
    return {
        "samples": totals.samples,
        **over_all,
        **{f"recent_{name}": value for name, value in lately.items()},
        "recent_reliability": [
            {"samples": int(samples), "probability": top / samples, "right": right / samples}
            for samples, top, right in recent_bins.T.tolist()
            if samples
        ],
        "sets": coverage,
    }


def _scores(n: int, sums: Float64Array, bins: Float64Array) -> dict[str, float | None]:
    if not n:
        return dict.fromkeys(("log_loss", "brier_score", "calibration_error"))
    return {
        "log_loss": float(sums[LOG_LOSS]) / n,
        "brier_score": float(sums[BRIER]) / n,
        "calibration_error": float(np.abs(bins[1] - bins[2]).sum()) / n,
    }


def _bins(columns: Float64Array) -> Float64Array:
    """(3, BINS) count, sum of p_max, and number right of each bin."""
    top, right = columns[TOP], columns[RIGHT]
    place = np.minimum((top * BINS).astype(np.int64), BINS - 1)
    weights = (None, top, right)
    return np.array([np.bincount(place, weight, BINS) for weight in weights], np.float64)
