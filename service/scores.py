"""Prequential scores: how well a head predicted samples just before it learned them."""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.rows import Float64Array

_RECENT = 1000


class Hits:
    """The share of right predictions: of all that were judged, and of the last 1,000."""

    def __init__(self) -> None:
        self.judged = self.correct = 0
        self._recent: deque[bool] = deque(maxlen=_RECENT)

    def count(self, hits: NDArray[Any]) -> None:
        """Take into account which predictions were right, (n,) of bool."""
        self.judged += len(hits)
        self.correct += int(hits.sum())
        self._recent.extend(hits.tolist())

    def told(self) -> dict[str, Any]:
        """For a description."""
        recent = len(self._recent)
        return {
            "samples": self.judged,
            "accuracy": self.correct / self.judged if self.judged else None,
            "recent_accuracy": sum(self._recent) / recent if recent else None,
        }

    def state(self) -> dict[str, Any]:
        """Plain data for `restore`."""
        recent = [int(hit) for hit in self._recent]
        return {"judged": self.judged, "correct": self.correct, "recent": recent}

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Take over a state."""
        self.judged, self.correct = plain["judged"], plain["correct"]
        self._recent.extend(bool(hit) for hit in plain["recent"])


class Errors:
    """Mean absolute error and root of the mean square: of all, and of the last 1,000."""

    def __init__(self) -> None:
        self.judged = 0
        self._absolute = self._square = 0.0
        self._recent = np.zeros(_RECENT)  # the error of sample i stands at i modulo its length

    def count(self, errors: Float64Array) -> None:
        """Take errors into account, (n,), one after another however they come in parts."""
        place = np.arange(self.judged, self.judged + len(errors)) % _RECENT
        self._recent[place[-_RECENT:]] = errors[-_RECENT:]
        self.judged += len(errors)
        for error in errors.tolist():
            self._absolute += abs(error)
            self._square += error * error

    def told(self) -> dict[str, Any]:
        """For a description."""
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
