"""Prequential scores: how well a head predicted samples just before it learned them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.arrays import Float64Array

_RECENT = 1000


class Hits:
    """Accuracy and Cohen's kappa: of all predictions that were judged, and of the last 1,000.

    kappa = (p_o - p_e) / (1 - p_e): p_o is the accuracy, p_e the one that predictions as
    frequent as these would have by chance (Cohen 1960, eq. 1). It takes a count for each class,
    however long the stream is.
    """

    def __init__(self) -> None:
        self.judged = self.correct = 0
        self._counts = np.zeros((2, 0), np.int64)  # of each class: as label, as prediction
        # The pair of sample i is at i modulo the length; -1 before there is one.
        self._recent = np.full((2, _RECENT), -1, np.int64)

    def count(self, codes: NDArray[np.int64], predicted: NDArray[np.int64]) -> None:
        """Add labels and their predictions, both (n,) class numbers."""
        pairs = np.stack([codes, predicted])
        place = np.arange(self.judged, self.judged + len(codes)) % _RECENT
        self._recent[:, place[-_RECENT:]] = pairs[:, -_RECENT:]
        self.judged += len(codes)
        self.correct += int((codes == predicted).sum())
        new = _counts(pairs, self._counts.shape[1])
        new[:, : self._counts.shape[1]] += self._counts
        self._counts = new

    def to_dict(self) -> dict[str, Any]:
        """The scores as plain data. kappa is None where p_e is 1: all is of one class."""
        recent = self._recent[:, self._recent[0] >= 0]
        n, correct = recent.shape[1], int((recent[0] == recent[1]).sum())
        return {
            "samples": self.judged,
            "accuracy": self.correct / self.judged if self.judged else None,
            "recent_accuracy": correct / n if n else None,
            "kappa": _kappa(self._counts, self.correct),
            "recent_kappa": _kappa(_counts(recent, 0), correct),
        }

    def state(self) -> dict[str, Any]:
        """Plain data for `restore`."""
        return {
            "judged": self.judged,
            "correct": self.correct,
            "counts": self._counts.tolist(),
            "recent": self._recent[:, : self.judged].tolist(),
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Take over a state; one that was saved before kappa was counted begins anew."""
        if "counts" not in plain:
            return
        self.judged, self.correct = plain["judged"], plain["correct"]
        self._counts = np.array(plain["counts"], np.int64)
        self._recent[:, : len(plain["recent"][0])] = plain["recent"]


def kappa(labels: Sequence[int], predicted: Sequence[int], correct: int) -> float | None:
    """Cohen's kappa from how often each class was the label, how often it was predicted.

    With n = sum(labels) and c = sum(labels_k said_k) it is (n correct - c) / (n^2 - c), in whole
    numbers until the division. None where all is of one class, or n is zero.
    """
    n = sum(labels)
    chance = sum(a * b for a, b in zip(labels, predicted, strict=True))
    return (n * correct - chance) / (n * n - chance) if n * n > chance else None


def _kappa(counts: NDArray[np.int64], correct: int) -> float | None:
    labels, predicted = counts.tolist()
    return kappa(labels, predicted, correct)


def _counts(pairs: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """Counts of each class in each row of (2, n), for at least so many classes."""
    classes = max(int(pairs.max(initial=-1)) + 1, least)
    return np.stack([np.bincount(row, minlength=classes) for row in pairs])


class Errors:
    """Mean absolute error and root of the mean square: of all, and of the last 1,000."""

    def __init__(self) -> None:
        self.judged = 0
        self._absolute = self._square = 0.0
        self._recent = np.zeros(_RECENT)  # the error of sample i is at i modulo the length

    def count(self, errors: Float64Array) -> None:
        """Add (n,) errors, one after another, so that the sums do not depend on the parts."""
        place = np.arange(self.judged, self.judged + len(errors)) % _RECENT
        self._recent[place[-_RECENT:]] = errors[-_RECENT:]
        self.judged += len(errors)
        for error in errors.tolist():
            self._absolute += abs(error)
            self._square += error * error

    def to_dict(self) -> dict[str, Any]:
        """The scores as plain data."""
        names = ("mae", "rmse", "recent_mae", "recent_rmse")
        if not self.judged:
            return {"samples": 0, **dict.fromkeys(names)}
        recent = self._recent[: self.judged]
        values = (
            self._absolute / self.judged,
            math.sqrt(self._square / self.judged),
            float(np.abs(recent).mean()),
            math.sqrt(float(np.square(recent).mean())),
        )
        return {"samples": self.judged, **dict(zip(names, values, strict=True))}

    def state(self) -> dict[str, Any]:
        """Plain data for `restore`; JSON keeps every bit of a number."""
        sums, recent = [self._absolute, self._square], self._recent[: self.judged].tolist()
        return {"judged": self.judged, "sums": sums, "recent": recent}

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Take over a state."""
        self.judged = plain["judged"]
        self._absolute, self._square = plain["sums"]
        self._recent[: len(plain["recent"])] = plain["recent"]


def score_in(plain: Mapping[str, Any]) -> Hits | Errors:
    """The score in a head's saved state."""
    score = Errors() if "sums" in plain else Hits()
    score.restore(plain)
    return score
