"""Prequential errors of numbers, and those of two rules that use no features."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from wolfstream.service.heads.changes import Changes
from wolfstream.service.heads.recent import RecentColumns
from wolfstream.solver.arrays import Float64Array

_RULES = ("", "last_value_", "running_mean_")
_NAMES = (*(f"{rule}{kind}" for rule in _RULES for kind in ("mae", "rmse")), "r2")


class Errors:
    """Errors of all predictions that were judged, and of the last 1,000 of them.

    mae is the mean absolute error, rmse the root of the mean square, each also of "the value before
    again" and of "the mean so far"; r2 = 1 - sum (y - f)^2 / sum (y - mean y)^2.
    `changes` are those of the absolute error.
    """

    def __init__(self) -> None:
        self.judged = 0
        self._sums = [0.0] * 6  # of |error| and error^2: of the head, the value before, the mean
        self._spread = [0.0, 0.0]  # the mean of judged targets, and their squares about it
        self._met = 0  # targets, of samples not judged as well
        self._last = self._mean = 0.0
        self.changes = Changes(scaled=True)
        # Target, error of the head, of the value before, and of the mean so far.
        self._recent = RecentColumns(4)

    def count(self, y: Float64Array, predicted: Float64Array) -> None:
        """Add (n,) targets and their predictions; NaN for no prediction.

        One after another, so that the sums do not depend on the parts.
        """
        columns = []
        for target, value in zip(y.tolist(), predicted.tolist(), strict=True):
            if value == value:
                errors = (value - target, self._last - target, self._mean - target)
                self._judge(target, errors)
                columns.append((target, *errors))
            self._met += 1
            self._last = target
            self._mean += (target - self._mean) / self._met
        if columns:
            found = np.array(columns).T
            self._recent.add(found)
            self.changes.add(np.abs(found[1]).tolist())

    def _judge(self, target: float, errors: tuple[float, ...]) -> None:
        self.judged += 1
        sums = self._sums
        for i, error in enumerate(errors):
            sums[2 * i] += abs(error)
            sums[2 * i + 1] += error * error
        mean, squares = self._spread
        step = target - mean
        mean += step / self.judged
        # Welford: the squares about the mean of one more value.
        self._spread = [mean, squares + step * (target - mean)]

    def to_dict(self) -> dict[str, Any]:
        """The scores as plain data; None if there is nothing to tell, as r2 of equal targets."""
        if not self.judged:
            names = [*_NAMES, *(f"recent_{name}" for name in _NAMES)]
            return {"samples": 0, **dict.fromkeys(names)}
        target, *errors = self._recent.columns()
        sums = [float(f(error).sum()) for error in errors for f in (np.abs, np.square)]
        spread = float(np.square(target - target.mean()).sum())
        total = _scores(self.judged, self._sums, self._spread[1])
        recent = _scores(len(target), sums, spread)
        return {
            "samples": self.judged,
            **dict(zip(_NAMES, total, strict=True)),
            **{f"recent_{name}": value for name, value in zip(_NAMES, recent, strict=True)},
        }

    def latest(self, n: int) -> list[tuple[float, float]]:
        """Prediction and target of the last n judged samples at most, the oldest first."""
        targets, errors = self._recent.latest(n)[:2]
        return list(zip((targets + errors).tolist(), targets.tolist(), strict=True))

    def copy(self) -> "Errors":
        """An independent copy."""
        other = Errors.__new__(Errors)
        vars(other).update(vars(self))  # copy.copy would take four times as long
        other._sums, other._recent = self._sums.copy(), self._recent.copy()
        other.changes = self.changes.copy()
        return other

    def state(self) -> dict[str, Any]:
        """Return plain data for `restore`, copied; JSON keeps every bit of a number."""
        return {
            "judged": self.judged,
            "sums": list(self._sums),
            "spread": self._spread,
            "rules": [self._met, self._last, self._mean],
            "recent": self._recent.state(),
            "changes": self.changes.state(),
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Take over a state; one without the counts of rules starts them from zero."""
        if "rules" not in plain:
            return
        self.judged = plain["judged"]
        self._sums, self._spread = list(plain["sums"]), list(plain["spread"])
        self._met, self._last, self._mean = plain["rules"]
        self._recent.restore(self.judged, plain["recent"])
        if "changes" in plain:  # older versions did not look for them
            self.changes.restore(plain["changes"])


def _scores(n: int, sums: list[float], spread: float) -> list[float | None]:
    """Return the values of `_NAMES`, of n samples with these sums."""
    means = [value / n for value in sums]
    found = [math.sqrt(mean) if i % 2 else mean for i, mean in enumerate(means)]
    return [*found, 1.0 - sums[1] / spread if spread > 0.0 else None]
