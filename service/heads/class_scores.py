"""Prequential scores of classes: of a head, of two baselines that use no features, and by class.

A class that is far more frequent than the others hides errors about these in the accuracy, but not
in the scores by class.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.recent import LENGTH, RecentColumns
from wolfstream.service.samples.labels import Label
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.changes import Changes
from wolfstream.solver.calibration.ranking import RankingScores
from wolfstream.solver.calibration.tally import COLUMNS, Counts, Tally, judge, tally_of
from wolfstream.solver.labels import text_of

# A class may be a typing mistake if it came at most 5 times, and in at most 1 of 200 samples.
_HANDFUL, _MANY = 5, 200
_NAMES = (
    "accuracy",
    "kappa",
    "kappa_temporal",
    "log_loss",
    "majority_accuracy",
    "last_label_accuracy",
)


class Hits:
    """The scores of all judged predictions, and of the last 1,000 of them.

    Let p_o be the accuracy.

        kappa           (p_o - p_e) / (1 - p_e); p_e is the accuracy that predictions as frequent as
                        these would have by chance (Cohen 1960, eq. 1)
        kappa_temporal  (p_o - p_l) / (1 - p_l); p_l is the accuracy of "the label before again"
                        (Bifet et al. 2013)
        log_loss        -mean log p of the true label, where the head has probabilities
        majority_accuracy    accuracy of "the most frequent label so far"; among equally frequent
                             labels, the first to become so
        last_label_accuracy  p_l

    The memory depends on the number of classes, not on the length of the stream.

    Attributes:
        changes: detects changes of the error rate.
    """

    def __init__(self) -> None:
        self.changes = Changes()
        self._recent = RecentColumns(COLUMNS)
        overall, recent = (tally_of(self._recent.columns(), 0) for _ in range(2))
        self._counts = Counts(np.zeros(0, np.int64), np.full(2, -1), overall, recent, np.zeros(2))

    @property
    def judged(self) -> int:
        """The number of judged predictions."""
        return int(self._counts.overall.confusion.sum())

    def count(
        self,
        codes: NDArray[np.int64],
        predicted: NDArray[np.int64],
        probability: Float64Array | None = None,
    ) -> None:
        """Count labels and their predictions.

        They are added one by one, so sums have the same bits however samples are grouped.

        Args:
            codes: the labels' codes, (n,).
            predicted: the predicted codes, (n,); -1 for no prediction.
            probability: probabilities of the classes, (n, K), if the head has them.
        """
        if not len(codes):
            return
        self._counts = self._counts.grown(1 + int(max(codes.max(), predicted.max())))
        p = np.full(len(codes), np.nan)
        if probability is not None:
            p[:] = probability[np.arange(len(codes)), codes]
        columns, first = self._recent.room(len(codes))
        columns[4, first : first + len(codes)] = np.nan
        n_recent, is_number = len(self._recent), ~np.isnan(p)
        places = columns, first, n_recent, LENGTH
        judged = judge(codes, predicted, p, is_number, self._counts, *places)
        self._recent.count(judged)
        labels, guesses = columns[:2, first : first + judged]
        self.changes.add((labels != guesses).astype(np.float64).tolist())

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain data; None for a score that is undefined.

        kappa is None if p_e is 1, as when all samples are of one class; kappa_temporal if p_l is 1.
        """
        losses = self._recent.columns()[4]
        lossy = losses[~np.isnan(losses)]
        loss = float(lossy.mean()) if len(lossy) else None
        sum_of_losses, count = self._counts.log_loss.tolist()
        total = _scores(self._counts.overall, sum_of_losses / count if count else None)
        recent = _scores(self._counts.recent, loss)
        return {
            "samples": self.judged,
            **dict(zip(_NAMES, total, strict=True)),
            **{f"recent_{name}": value for name, value in zip(_NAMES, recent, strict=True)},
        }

    def tallies(self) -> dict[str, Tally]:
        """Return the counts of the last judged samples and of all; do not modify them."""
        return {"recent": self._counts.recent, "overall": self._counts.overall}

    def latest(self, n: int) -> list[tuple[int, int]]:
        """Return the predictions and labels of the last n judged samples, oldest first."""
        labels, guesses = self._recent.latest(n)[:2].astype(np.int64).tolist()
        return list(zip(guesses, labels, strict=True))

    @property
    def met(self) -> Sequence[int]:
        """How often each class came, judged or not."""
        return self._counts.met.tolist()  # type: ignore[no-any-return]

    def rare(self) -> list[int]:
        """Return the codes of classes so rare that they may be typing mistakes."""
        met = self.met
        total = sum(met)
        return [k for k, n in enumerate(met) if 0 < n <= _HANDFUL and n * _MANY <= total]

    def copy(self) -> "Hits":
        """Return an independent copy."""
        other = Hits.__new__(Hits)
        vars(other).update(vars(self))  # copy.copy would take four times as long
        other._counts, other._recent = self._counts.copy(), self._recent.copy()
        other.changes = self.changes.copy()
        return other

    def state(self) -> dict[str, Any]:
        """Return a copy as plain data for `restore`; JSON keeps every bit of a number."""
        counts = self._counts
        sum_of_losses, count = counts.log_loss.tolist()
        return {
            "confusion": counts.overall.confusion.tolist(),
            "met": counts.met.tolist(),
            "rules": [*counts.overall.rules.tolist(), *counts.said.tolist()],
            "log_loss": [sum_of_losses, int(count)],
            "recent": self._recent.state(),
            "changes": self.changes.state(),
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        met, rules = np.array(plain["met"], np.int64), np.array(plain["rules"], np.int64)
        confusion = np.array(plain["confusion"], np.int64).reshape(len(met), len(met))
        self._recent.restore(int(confusion.sum()), plain["recent"])
        overall, log_loss = Tally(confusion, rules[:2]), np.array(plain["log_loss"], np.float64)
        recent = tally_of(self._recent.columns(), len(met))
        self._counts = Counts(met, rules[2:], overall, recent, log_loss)
        self.changes.restore(plain["changes"])


def kappa(labels: Sequence[int], predicted: Sequence[int], correct: int) -> float | None:
    """Return Cohen's kappa.

    With n = sum(labels) and c = sum(labels_k predicted_k) it is (n correct - c) / (n^2 - c),
    exact until the division. None if all samples are of one class, or there are none.

    Args:
        labels: how often each class was the label, (K,).
        predicted: how often each class was predicted, (K,).
        correct: the number of correct predictions.
    """
    n = sum(labels)
    chance = sum(a * b for a, b in zip(labels, predicted, strict=True))
    return (n * correct - chance) / (n * n - chance) if n * n > chance else None


def _scores(tally: Tally, log_loss: float | None) -> tuple[float | None, ...]:
    """Return the values of `_NAMES`."""
    confusion, (last, majority) = tally.confusion, tally.rules.tolist()
    labels, guesses = confusion.sum(axis=1).tolist(), confusion.sum(axis=0).tolist()
    n, right = sum(labels), int(confusion.trace())
    if not n:
        return (None,) * len(_NAMES)
    temporal = (right - last) / (n - last) if n > last else None
    chance_corrected = kappa(labels, guesses, right)
    return right / n, chance_corrected, temporal, log_loss, majority / n, last / n


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
