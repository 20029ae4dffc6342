"""The quality of probabilities: log loss, Brier score, expected calibration error, and coverage.

    log loss     mean of -log p_y
    Brier score  mean of sum_k (p_k - [k = y])^2                                   (Brier 1950)
    ECE          sum over bins of |sum of p_max - number right| / n, with ten bins of p_max
                 (Naeini, Cooper and Hauskrecht 2015)

The numbers of a row are one column (`RowScores.columns`); totals are sums of columns, and of each
bin of p_max.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.conformal import CONFIDENCES

BINS = 10
# The least probability in the log loss, also of a class that was not known yet.
LEAST = 1e-15


class RowScores(NamedTuple):
    """The scores of n rows."""

    # (n,) as above.
    log_loss: Float64Array
    brier: Float64Array
    # (n,) p_max.
    top: Float64Array
    # (n,) 1 if the class with p_max is the label, otherwise 0.
    right: Float64Array
    # (n,) the conformal score 1 - p_y.
    score: Float64Array
    # (confidences, n) 1 if the set contained the label, otherwise 0.
    covered: Float64Array
    # (confidences, n) the number of classes in the set.
    size: Float64Array

    def columns(self) -> Float64Array:
        """Return all fields in this order, (ROWS, n)."""
        return np.vstack([*self])


# The rows of `RowScores.columns`.
LOG_LOSS, BRIER, TOP, RIGHT, SCORE, COVERED = range(6)
SIZE = COVERED + len(CONFIDENCES)
ROWS = SIZE + len(CONFIDENCES)


class Totals(NamedTuple):
    """Sums over all rows so far."""

    # The number of rows.
    samples: int
    # (ROWS,) the sum of their columns.
    sums: Float64Array
    # (3, BINS) the number of rows, the sum of p_max, and the number right in each bin of p_max.
    bins: Float64Array


def no_totals() -> Totals:
    """Return the sums before any row."""
    return Totals(0, np.zeros(ROWS), np.zeros((3, BINS)))


def score_rows(
    probability: Float64Array, codes: NDArray[np.int64], limits: Float64Array
) -> tuple[RowScores, Float64Array]:
    """Return the scores of n rows, and whether 1 - p_y is within each limit, (confidences, n).

    A set has all classes whose 1 - p is within the limit, and always the likeliest class. The
    second result is without this exception.

    probability: (n, K).
    codes: (n,) labels; one >= K was not known.
    limits: (confidences,) conformal thresholds.
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
    return RowScores(log_loss, brier, top, right, score, covered, np.maximum(sizes, 1.0)), plain


def with_columns(totals: Totals, columns: Float64Array) -> Totals:
    """Return the sums with the columns (ROWS, n) of further rows."""
    bins = totals.bins + _bins(columns)
    return Totals(totals.samples + columns.shape[1], totals.sums + columns.sum(axis=1), bins)


def summary(totals: Totals, recent: Float64Array) -> dict[str, Any]:
    """Return the scores as plain data; None for scores without rows.

    totals: of all rows.
    recent: (ROWS, n) columns of the last rows.
    """
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
    """Return `Totals.bins` of columns (ROWS, n)."""
    top, right = columns[TOP], columns[RIGHT]
    number = np.minimum((top * BINS).astype(np.int64), BINS - 1)
    weights = (None, top, right)
    return np.array([np.bincount(number, weight, BINS) for weight in weights], np.float64)
