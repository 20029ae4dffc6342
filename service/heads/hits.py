"""Prequential scores of classes, beside those of two rules that know no features."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.heads.changes import Changes
from service.heads.recent import LENGTH, RecentColumns
from solver.arrays import Float64Array

# A class that was given less, or that was not known yet, costs -log of this.
_LEAST_PROBABILITY = 1e-15
# A class that came so often at most, and in one sample of so many, may be a mistake.
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
    """Scores of all predictions that were judged, and of the last 1,000 of them.

    With p_o the accuracy: kappa = (p_o - p_e) / (1 - p_e), p_e being the accuracy that predictions
    as frequent as these would have by chance (Cohen 1960, eq. 1); kappa_temporal =
    (p_o - p_l) / (1 - p_l), p_l being that of "the label before again" (Bifet et al. 2013);
    log_loss = -mean log p of the true label, where the head has probabilities. majority_accuracy
    is that of "the most frequent label so far", of equals the one that was so first. A few numbers
    for each class are kept, however long the stream is. `changes` are those of the error rate.
    """

    def __init__(self) -> None:
        self.judged = self.correct = 0
        self._rule_hits = [0, 0]  # of the label before, and of the most frequent one
        self._log_loss = 0.0
        self._lossy = 0  # judged samples with a log loss
        # Of each class: how often it was a judged label, how often predicted, how often met.
        self._counts: list[list[int]] = [[], [], []]
        self._last = self._majority = -1
        self.changes = Changes()
        # Label, prediction, whether the label before was right, whether the most frequent was,
        # log loss.
        self._recent = RecentColumns(5)
        # Of those: the hits of the head and of both rules, and as `_counts`.
        self._recent_hits = [0, 0, 0]
        self._recent_counts: list[list[int]] = [[], []]

    def count(
        self,
        codes: NDArray[np.int64],
        predicted: NDArray[np.int64],
        probability: Float64Array | None = None,
    ) -> None:
        """Add labels and their predictions, both (n,) class numbers; -1 for no prediction.

        probability: (n, K) of each class, if the head has them. Samples are added one after
        another, so that sums do not depend on the parts.
        """
        of_labels, of_guesses = codes.tolist(), predicted.tolist()
        self._meet(max([-1, *of_labels, *of_guesses]) + 1)
        labels, guesses, met = self._counts
        last, majority = self._last, self._majority
        losses = _log_losses(probability, codes)
        columns, wrong, right = [], list[float](), 0
        for code, guess, loss in zip(of_labels, of_guesses, losses, strict=True):
            if guess >= 0:
                columns.append((code, guess, code == last, code == majority, loss))
                right += code == guess
                wrong.append(float(code != guess))
                labels[code] += 1
                guesses[guess] += 1
                if loss == loss:
                    self._log_loss += loss
                    self._lossy += 1
            met[code] += 1
            last = code
            if majority < 0 or met[code] > met[majority]:
                majority = code
        self._last, self._majority = last, majority
        if columns:
            self.judged += len(columns)
            self.correct += right
            self._rule_hits[0] += sum(column[2] for column in columns)
            self._rule_hits[1] += sum(column[3] for column in columns)
            self._count_recent(self._recent.oldest(len(columns)).T.tolist(), -1)
            self._recent.add(np.array(columns, np.float64).T)
            self._count_recent(columns[-LENGTH:], 1)
            self.changes.add(wrong)

    def _count_recent(self, columns: Iterable[Sequence[float]], sign: int) -> None:
        """Count columns that are among the last 1,000 now (1), or no longer (-1)."""
        hits, (labels, guesses) = self._recent_hits, self._recent_counts
        for code, guess, last, majority, _ in columns:
            hits[0] += sign * (code == guess)
            hits[1] += sign * int(last)
            hits[2] += sign * int(majority)
            labels[int(code)] += sign
            guesses[int(guess)] += sign

    def _meet(self, classes: int) -> None:
        for counts in (*self._counts, *self._recent_counts):
            counts += [0] * (classes - len(counts))

    def to_dict(self) -> dict[str, Any]:
        """The scores as plain data; None where there is nothing to tell.

        kappa is None where p_e is 1, all being of one class, and kappa_temporal where p_l is.
        """
        losses = self._recent.columns()[4]
        lossy = losses[~np.isnan(losses)]
        loss = float(lossy.mean()) if len(lossy) else None
        total_loss = self._log_loss / self._lossy if self._lossy else None
        total = _scores(self.judged, [self.correct, *self._rule_hits], self._counts[:2], total_loss)
        of_late = _scores(len(losses), self._recent_hits, self._recent_counts, loss)
        return {
            "samples": self.judged,
            **dict(zip(_NAMES, total, strict=True)),
            **{f"recent_{name}": value for name, value in zip(_NAMES, of_late, strict=True)},
        }

    def latest(self, n: int) -> list[tuple[int, int]]:
        """Prediction and label of the last n judged samples at most, the oldest first."""
        labels, guesses = self._recent.latest(n)[:2].astype(np.int64).tolist()
        return list(zip(guesses, labels, strict=True))

    def rare(self) -> list[int]:
        """Classes that were met a handful of times among very many samples."""
        met = self._counts[2]
        total = sum(met)
        return [k for k, n in enumerate(met) if 0 < n <= _HANDFUL and n * _MANY <= total]

    def copy(self) -> "Hits":
        """An independent copy."""
        other = Hits.__new__(Hits)
        vars(other).update(vars(self))  # copy.copy would take four times as long
        other._rule_hits, other._recent = self._rule_hits.copy(), self._recent.copy()
        other._counts = [counts.copy() for counts in self._counts]
        other._recent_hits = self._recent_hits.copy()
        other._recent_counts = [counts.copy() for counts in self._recent_counts]
        other.changes = self.changes.copy()
        return other

    def state(self) -> dict[str, Any]:
        """Plain data for `restore`, copied; JSON keeps every bit of a number."""
        return {
            "judged": self.judged,
            "correct": self.correct,
            "counts": [list(counts) for counts in self._counts],
            "rules": [*self._rule_hits, self._last, self._majority],
            "log_loss": [self._log_loss, self._lossy],
            "recent": self._recent.state(),
            "changes": self.changes.state(),
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Take over a state; one that was saved before rules were counted begins anew."""
        if "rules" not in plain:
            return
        self.judged, self.correct = plain["judged"], plain["correct"]
        self._counts = [list(counts) for counts in plain["counts"]]
        *self._rule_hits, self._last, self._majority = plain["rules"]
        self._log_loss, self._lossy = plain["log_loss"]
        self._recent.restore(self.judged, plain["recent"])
        self._recent_hits = [0, 0, 0]
        self._recent_counts = [[0] * len(self._counts[0]) for _ in range(2)]
        self._count_recent(self._recent.columns().T.tolist(), 1)
        if "changes" in plain:  # older versions did not look for them
            self.changes.restore(plain["changes"])


def kappa(labels: Sequence[int], predicted: Sequence[int], correct: int) -> float | None:
    """Cohen's kappa from how often each class was the label, how often it was predicted.

    With n = sum(labels) and c = sum(labels_k predicted_k) it is (n correct - c) / (n^2 - c), in
    whole numbers until the division. None where all is of one class, or n is zero.
    """
    n = sum(labels)
    chance = sum(a * b for a, b in zip(labels, predicted, strict=True))
    return (n * correct - chance) / (n * n - chance) if n * n > chance else None


def _scores(
    n: int, hits: Sequence[int], counts: Sequence[Sequence[int]], log_loss: float | None
) -> tuple[float | None, ...]:
    """The values of `_NAMES`, of n samples. hits: of the head, of the label before, of the most."""
    if not n:
        return (None,) * len(_NAMES)
    right, last, majority = hits
    temporal = (right - last) / (n - last) if n > last else None
    labels, predicted = counts
    agreement = kappa(labels, predicted, right)
    return right / n, agreement, temporal, log_loss, majority / n, last / n


def _log_losses(probability: Float64Array | None, codes: NDArray[np.int64]) -> list[float]:
    """-log p of the label of each sample; NaN without probabilities."""
    if probability is None:
        return [math.nan] * len(codes)
    of_label = probability[np.arange(len(codes)), codes].tolist()
    return [-math.log(max(p, _LEAST_PROBABILITY)) for p in of_label]
