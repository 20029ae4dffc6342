"""Prequential scores of classes: of a head, of two baselines that use no features, and by class.

A class that is far more frequent than the others hides errors about these in the accuracy, but not
in the scores by class.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress
from operator import eq, ne, neg
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.recent import LENGTH, RecentColumns
from wolfstream.service.samples.labels import Label
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.changes import Changes
from wolfstream.solver.calibration.ranking import RankingScores
from wolfstream.solver.labels import text_of

# The log loss raises smaller probabilities to this, also those of classes not known yet.
_LEAST_PROBABILITY = 1e-15
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


class Tally:
    """Judged samples by label and prediction.

    Attributes:
        confusion: (K, K) counts, one row for each label and one column for each prediction.
        labels: the sum of each row.
        guesses: the sum of each column.
        samples: the number of samples.
        right: the number of correct predictions.
        rules: how often the baselines "the label before" and "the most frequent label so far" were
            correct.
    """

    def __init__(self, confusion: NDArray[np.int64] | None = None) -> None:
        self.confusion = np.zeros((0, 0), np.int64) if confusion is None else confusion
        self.labels: list[int] = self.confusion.sum(axis=1).tolist()
        self.guesses: list[int] = self.confusion.sum(axis=0).tolist()
        self.samples, self.right = int(self.confusion.sum()), int(self.confusion.trace())
        self.rules = [0, 0]

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes."""
        if (more := classes - len(self.confusion)) > 0:
            self.confusion = np.pad(self.confusion, (0, more))
            self.labels += [0] * more
            self.guesses += [0] * more

    def add(self, judged: Mapping[tuple[float, ...], int], sign: int = 1) -> None:
        """Count samples, given by the first four columns of `Hits`; with sign -1, subtract them."""
        confusion, rules = self.confusion, self.rules
        for (label_code, guess_code, last, majority), count in judged.items():
            n, code, guess = sign * count, int(label_code), int(guess_code)
            confusion[code, guess] += n
            self.labels[code] += n
            self.guesses[guess] += n
            self.samples += n
            if code == guess:
                self.right += n
            rules[0] += n * int(last)
            rules[1] += n * int(majority)

    def copy(self) -> "Tally":
        """Return an independent copy."""
        other = Tally.__new__(Tally)
        vars(other).update(vars(self))
        other.confusion, other.rules = self.confusion.copy(), self.rules.copy()
        other.labels, other.guesses = self.labels.copy(), self.guesses.copy()
        return other


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
        self._log_loss = 0.0  # the sum over judged samples
        self._lossy = 0  # judged samples that have a log loss
        self._met: list[int] = []  # how often each class came, judged or not
        self._last = self._majority = -1  # codes of the last and of the most frequent label
        self.changes = Changes()
        # Columns: label, prediction, whether each baseline was correct, log loss.
        self._recent = RecentColumns(5)
        self._overall_tally, self._recent_tally = Tally(), Tally()

    @property
    def judged(self) -> int:
        """The number of judged predictions."""
        return self._overall_tally.samples

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
        labels, guesses = codes.tolist(), predicted.tolist()
        self._meet(max([-1, *labels, *guesses]) + 1)
        met, last, majority = self._met, self._last, self._majority
        losses = _log_losses(probability, codes)
        before, majorities = [last, *labels], list[bool]()
        for code in labels:
            majorities.append(code == majority)
            met[code] += 1
            if majority < 0 or met[code] > met[majority]:
                majority = code
        self._last, self._majority = before[-1], majority
        columns: list[list[Any]] = [labels, guesses, list(map(eq, labels, before)), majorities]
        columns.append(losses)
        if -1 in guesses:
            judged = [guess >= 0 for guess in guesses]
            columns = [list(compress(column, judged)) for column in columns]
        if columns[0]:
            self._judge(*columns)

    def _judge(
        self,
        labels: list[int],
        guesses: list[int],
        last: list[bool],
        majority: list[bool],
        losses: list[float],
    ) -> None:
        """Count predictions and whether each baseline was correct."""
        for loss in losses:
            if loss == loss:
                self._log_loss += loss
                self._lossy += 1
        columns = labels, guesses, last, majority
        counted = _counted(columns)
        self._overall_tally.add(counted)
        dropped = self._recent.oldest(len(losses))[:4].astype(np.int64).tolist()
        self._recent_tally.add(_counted(dropped), -1)
        within = [column[-LENGTH:] for column in columns]
        self._recent_tally.add(counted if len(losses) <= LENGTH else _counted(within))
        self._recent.add(np.array((*columns, losses), np.float64))
        self.changes.add(map(float, map(ne, labels, guesses)))

    def _meet(self, classes: int) -> None:
        self._met += [0] * (classes - len(self._met))
        self._overall_tally.meet(classes)
        self._recent_tally.meet(classes)

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain data; None for a score that is undefined.

        kappa is None if p_e is 1, as when all samples are of one class; kappa_temporal if p_l is 1.
        """
        losses = self._recent.columns()[4]
        lossy = losses[~np.isnan(losses)]
        loss = float(lossy.mean()) if len(lossy) else None
        total_loss = self._log_loss / self._lossy if self._lossy else None
        total = _scores(self._overall_tally, total_loss)
        recent = _scores(self._recent_tally, loss)
        return {
            "samples": self.judged,
            **dict(zip(_NAMES, total, strict=True)),
            **{f"recent_{name}": value for name, value in zip(_NAMES, recent, strict=True)},
        }

    def tallies(self) -> dict[str, Tally]:
        """Return the counts of the last judged samples and of all; do not modify them."""
        return {"recent": self._recent_tally, "overall": self._overall_tally}

    def latest(self, n: int) -> list[tuple[int, int]]:
        """Return the predictions and labels of the last n judged samples, oldest first."""
        labels, guesses = self._recent.latest(n)[:2].astype(np.int64).tolist()
        return list(zip(guesses, labels, strict=True))

    @property
    def met(self) -> Sequence[int]:
        """How often each class came, judged or not; do not modify it."""
        return self._met

    def rare(self) -> list[int]:
        """Return the codes of classes so rare that they may be typing mistakes."""
        met = self._met
        total = sum(met)
        return [k for k, n in enumerate(met) if 0 < n <= _HANDFUL and n * _MANY <= total]

    def copy(self) -> "Hits":
        """Return an independent copy."""
        other = Hits.__new__(Hits)
        vars(other).update(vars(self))  # copy.copy would take four times as long
        other._met, other._recent = self._met.copy(), self._recent.copy()
        other._overall_tally = self._overall_tally.copy()
        other._recent_tally = self._recent_tally.copy()
        other.changes = self.changes.copy()
        return other

    def state(self) -> dict[str, Any]:
        """Return a copy as plain data for `restore`; JSON keeps every bit of a number."""
        tally = self._overall_tally
        return {
            "confusion": tally.confusion.tolist(),
            "met": self._met.copy(),
            "rules": [*tally.rules, self._last, self._majority],
            "log_loss": [self._log_loss, self._lossy],
            "recent": self._recent.state(),
            "changes": self.changes.state(),
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        self._met = list(plain["met"])
        classes = len(self._met)
        confusion = np.array(plain["confusion"], np.int64).reshape(classes, classes)
        self._overall_tally, self._recent_tally = Tally(confusion), Tally(np.zeros_like(confusion))
        *self._overall_tally.rules, self._last, self._majority = plain["rules"]
        self._log_loss, self._lossy = plain["log_loss"]
        self._recent.restore(self.judged, plain["recent"])
        self._recent_tally.add(_counted(self._recent.columns()[:4].tolist()))
        self.changes.restore(plain["changes"])


def _counted(columns: Sequence[Sequence[float]]) -> Counter[tuple[float, ...]]:
    """Return how often each combination of the first four columns of `Hits` occurs."""
    return Counter(zip(*columns, strict=True))


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
    n, right, (last, majority) = tally.samples, tally.right, tally.rules
    if not n:
        return (None,) * len(_NAMES)
    temporal = (right - last) / (n - last) if n > last else None
    chance_corrected = kappa(tally.labels, tally.guesses, right)
    return right / n, chance_corrected, temporal, log_loss, majority / n, last / n


def _log_losses(probability: Float64Array | None, codes: NDArray[np.int64]) -> list[float]:
    """Return -log p of each sample's label; NaN without probabilities."""
    if probability is None:
        return [math.nan] * len(codes)
    label_probability = probability[np.arange(len(codes)), codes]
    # numpy's own logarithm has other bits on other processors.
    logs = map(math.log, np.maximum(label_probability, _LEAST_PROBABILITY).tolist())
    return list(map(neg, logs))


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
