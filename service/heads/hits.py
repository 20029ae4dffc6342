"""Prequential scores of classes, and those of two rules that use no features."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.changes import Changes
from wolfstream.service.heads.recent import LENGTH, RecentColumns
from wolfstream.solver.arrays import Float64Array

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


class Tally:
    """Judged samples by label and prediction, and how often two rules were right about them.

    confusion: (K, K) how often each class was the label, and what the head predicted then; labels,
    guesses: the sums of its rows and columns, and right: that of its diagonal. samples: how many.
    rules: how often the label before was right, and the most frequent one.
    """

    def __init__(self, confusion: NDArray[np.int64] | None = None) -> None:
        self.confusion = np.zeros((0, 0), np.int64) if confusion is None else confusion
        self.labels: list[int] = self.confusion.sum(axis=1).tolist()
        self.guesses: list[int] = self.confusion.sum(axis=0).tolist()
        self.samples, self.right = int(self.confusion.sum()), int(self.confusion.trace())
        self.rules = [0, 0]

    def meet(self, classes: int) -> None:
        """Make room for so many classes."""
        if (more := classes - len(self.confusion)) > 0:
            self.confusion = np.pad(self.confusion, (0, more))
            self.labels += [0] * more
            self.guesses += [0] * more

    def add(self, judged: Mapping[tuple[float, ...], int], sign: int = 1) -> None:
        """Count samples by the first four of the columns of `Hits`; with -1 no longer."""
        confusion, rules = self.confusion, self.rules
        for (of_label, of_guess, last, majority), count in judged.items():
            n, code, guess = sign * count, int(of_label), int(of_guess)
            confusion[code, guess] += n
            self.labels[code] += n
            self.guesses[guess] += n
            self.samples += n
            if code == guess:
                self.right += n
            rules[0] += n * int(last)
            rules[1] += n * int(majority)

    def copy(self) -> "Tally":
        """An independent copy."""
        other = Tally.__new__(Tally)
        vars(other).update(vars(self))
        other.confusion, other.rules = self.confusion.copy(), self.rules.copy()
        other.labels, other.guesses = self.labels.copy(), self.guesses.copy()
        return other


class Hits:
    """The scores of all judged predictions, and of the last 1,000 of them.

    With p_o the accuracy: kappa = (p_o - p_e) / (1 - p_e), p_e being the accuracy that predictions
    as frequent as these would have by chance (Cohen 1960, eq. 1); kappa_temporal =
    (p_o - p_l) / (1 - p_l), p_l being that of "the label before again" (Bifet et al. 2013);
    log_loss = -mean log p of the true label, where the head has probabilities. majority_accuracy
    is that of "the most frequent label so far", of equals the one that was so first. A few numbers
    for each pair of classes are kept, however long the stream is. `changes` are those of the error
    rate.
    """

    def __init__(self) -> None:
        self._log_loss = 0.0
        self._lossy = 0  # judged samples with a log loss
        self._met: list[int] = []  # how often each class came, judged or not
        self._last = self._majority = -1
        self.changes = Changes()
        # Label, prediction, whether the label before was right, whether the most frequent was,
        # log loss.
        self._recent = RecentColumns(5)
        self._of_all, self._of_recent = Tally(), Tally()

    @property
    def judged(self) -> int:
        """How many predictions were judged."""
        return self._of_all.samples

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
        labels, guesses = codes.tolist(), predicted.tolist()
        self._meet(max([-1, *labels, *guesses]) + 1)
        met, last, majority = self._met, self._last, self._majority
        judged, of_judged, wrong = list[tuple[int, ...]](), list[float](), list[float]()
        for code, guess, loss in zip(labels, guesses, _log_losses(probability, codes), strict=True):
            if guess >= 0:
                judged.append((code, guess, code == last, code == majority))
                of_judged.append(loss)
                wrong.append(float(code != guess))
                if loss == loss:
                    self._log_loss += loss
                    self._lossy += 1
            met[code] += 1
            last = code
            if majority < 0 or met[code] > met[majority]:
                majority = code
        self._last, self._majority = last, majority
        if judged:
            self._judge(judged, of_judged)
            self.changes.add(wrong)

    def _judge(self, judged: list[tuple[int, ...]], losses: list[float]) -> None:
        counted = Counter[tuple[float, ...]](judged)
        self._of_all.add(counted)
        self._of_recent.add(_counted(self._recent.oldest(len(judged))), -1)
        self._of_recent.add(counted if len(judged) <= LENGTH else Counter(judged[-LENGTH:]))
        columns = np.empty((5, len(judged)))
        columns[:4], columns[4] = np.array(judged).T, losses
        self._recent.add(columns)

    def _meet(self, classes: int) -> None:
        self._met += [0] * (classes - len(self._met))
        self._of_all.meet(classes)
        self._of_recent.meet(classes)

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain data; None if there is nothing to tell.

        kappa is None if p_e is 1, all being of one class, and kappa_temporal where p_l is.
        """
        losses = self._recent.columns()[4]
        lossy = losses[~np.isnan(losses)]
        loss = float(lossy.mean()) if len(lossy) else None
        total_loss = self._log_loss / self._lossy if self._lossy else None
        total = _scores(self._of_all, total_loss)
        of_late = _scores(self._of_recent, loss)
        return {
            "samples": self.judged,
            **dict(zip(_NAMES, total, strict=True)),
            **{f"recent_{name}": value for name, value in zip(_NAMES, of_late, strict=True)},
        }

    def tallies(self) -> dict[str, Tally]:
        """Return the counts of the last judged samples, and of all; to be read only."""
        return {"recent": self._of_recent, "overall": self._of_all}

    def latest(self, n: int) -> list[tuple[int, int]]:
        """Return prediction and label of at most the last n judged samples, the oldest first."""
        labels, guesses = self._recent.latest(n)[:2].astype(np.int64).tolist()
        return list(zip(guesses, labels, strict=True))

    def recent(self) -> Float64Array:
        """Return the last judged samples, (5, at most 1,000), the oldest first; to be read only.

        In columns: label, prediction, whether the label before was right, whether the most frequent
        one was, log loss.
        """
        return self._recent.columns()

    @property
    def met(self) -> Sequence[int]:
        """How often each class came, judged or not; to be read only."""
        return self._met

    def rare(self) -> list[int]:
        """Classes that were met a handful of times among very many samples."""
        met = self._met
        total = sum(met)
        return [k for k, n in enumerate(met) if 0 < n <= _HANDFUL and n * _MANY <= total]

    def copy(self) -> "Hits":
        """An independent copy."""
        other = Hits.__new__(Hits)
        vars(other).update(vars(self))  # copy.copy would take four times as long
        other._met, other._recent = self._met.copy(), self._recent.copy()
        other._of_all, other._of_recent = self._of_all.copy(), self._of_recent.copy()
        other.changes = self.changes.copy()
        return other

    def state(self) -> dict[str, Any]:
        """Plain data for `restore`, copied; JSON keeps every bit of a number."""
        tally = self._of_all
        return {
            "confusion": tally.confusion.tolist(),
            "met": self._met.copy(),
            "rules": [*tally.rules, self._last, self._majority],
            "log_loss": [self._log_loss, self._lossy],
            "recent": self._recent.state(),
            "changes": self.changes.state(),
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Take over a state; one without pairs of classes starts from zero."""
        if "confusion" not in plain:
            return
        self._met = list(plain["met"])
        classes = len(self._met)
        confusion = np.array(plain["confusion"], np.int64).reshape(classes, classes)
        self._of_all, self._of_recent = Tally(confusion), Tally(np.zeros_like(confusion))
        *self._of_all.rules, self._last, self._majority = plain["rules"]
        self._log_loss, self._lossy = plain["log_loss"]
        self._recent.restore(self.judged, plain["recent"])
        self._of_recent.add(_counted(self._recent.columns()))
        if "changes" in plain:  # older versions did not look for them
            self.changes.restore(plain["changes"])


def _counted(columns: Float64Array) -> Counter[tuple[float, ...]]:
    """How often each combination of the first four of the columns of `Hits` occurs."""
    return Counter(zip(*columns[:4].tolist(), strict=True))


def kappa(labels: Sequence[int], predicted: Sequence[int], correct: int) -> float | None:
    """Cohen's kappa from how often each class was the label, how often it was predicted.

    With n = sum(labels) and c = sum(labels_k predicted_k) it is (n correct - c) / (n^2 - c), in
    whole numbers until the division. None if all is of one class, or n is zero.
    """
    n = sum(labels)
    chance = sum(a * b for a, b in zip(labels, predicted, strict=True))
    return (n * correct - chance) / (n * n - chance) if n * n > chance else None


def _scores(tally: Tally, log_loss: float | None) -> tuple[float | None, ...]:
    """The values of `_NAMES`."""
    n, right, (last, majority) = tally.samples, tally.right, tally.rules
    if not n:
        return (None,) * len(_NAMES)
    temporal = (right - last) / (n - last) if n > last else None
    chance_corrected = kappa(tally.labels, tally.guesses, right)
    return right / n, chance_corrected, temporal, log_loss, majority / n, last / n


def _log_losses(probability: Float64Array | None, codes: NDArray[np.int64]) -> list[float]:
    """-log p of the label of each sample; NaN without probabilities."""
    if probability is None:
        return [math.nan] * len(codes)
    of_label = probability[np.arange(len(codes)), codes].tolist()
    return [-math.log(max(p, _LEAST_PROBABILITY)) for p in of_label]
