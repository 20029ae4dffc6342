"""Prequential scores of numbers, and the score of a head of either task.

A score counts how well a head predicted samples just before it learned them. It comes with the
scores of baselines, which use no features, on the same samples: the label or value before, the most
frequent label so far, and the mean so far.
"""

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from wolfstream.service.heads.class_scores import Hits
from wolfstream.service.heads.recent import RecentColumns
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.changes import Changes

_RULES = ("", "last_value_", "running_mean_")
_NAMES = (*(f"{rule}{kind}" for rule in _RULES for kind in ("mae", "rmse")), "r2")


class Errors:
    """The errors of all judged predictions, and of the last 1,000 of them.

    mae is the mean absolute error and rmse the root mean square error, both also of the baselines
    "the value before again" and "the mean so far". r2 = 1 - sum (y - f)^2 / sum (y - mean y)^2.

    Attributes:
        judged: the number of judged predictions.
        changes: detects changes of the absolute error.
    """

    def __init__(self) -> None:
        self.judged = 0
        self._sums = [0.0] * 6  # sums of |error| and error^2: head, value before, mean
        self._spread = [0.0, 0.0]  # mean of judged targets, and sum of squared deviations
        self._met = 0  # targets so far, judged or not
        self._last = self._mean = 0.0  # the last target, and the mean of all targets
        self.changes = Changes(scaled=True)
        # Columns: target, and the errors of the head, of the value before, of the mean so far.
        self._recent = RecentColumns(4)

    def count(self, y: Float64Array, predicted: Float64Array) -> None:
        """Count targets and their predictions.

        They are added one by one, so sums have the same bits however samples are grouped.

        Args:
            y: the targets, (n,).
            predicted: the predictions, (n,); NaN for no prediction.
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
            added = np.array(columns).T
            self._recent.add(added)
            self.changes.add(np.abs(added[1]).tolist())

    def _judge(self, target: float, errors: tuple[float, ...]) -> None:
        self.judged += 1
        sums = self._sums
        for i, error in enumerate(errors):
            sums[2 * i] += abs(error)
            sums[2 * i + 1] += error * error
        mean, squares = self._spread
        step = target - mean
        mean += step / self.judged
        # Welford's update of the squares about the mean.
        self._spread = [mean, squares + step * (target - mean)]

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain data; None for a score that is undefined."""
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
        """Return the predictions and targets of the last n judged samples, oldest first."""
        targets, errors = self._recent.latest(n)[:2]
        return list(zip((targets + errors).tolist(), targets.tolist(), strict=True))

    def copy(self) -> "Errors":
        """Return an independent copy."""
        other = Errors.__new__(Errors)
        vars(other).update(vars(self))  # copy.copy would take four times as long
        other._sums, other._recent = self._sums.copy(), self._recent.copy()
        other.changes = self.changes.copy()
        return other

    def state(self) -> dict[str, Any]:
        """Return a copy as plain data for `restore`; JSON keeps every bit of a number."""
        return {
            "judged": self.judged,
            "sums": list(self._sums),
            "spread": self._spread,
            "rules": [self._met, self._last, self._mean],
            "recent": self._recent.state(),
            "changes": self.changes.state(),
        }

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        self.judged = plain["judged"]
        self._sums, self._spread = list(plain["sums"]), list(plain["spread"])
        self._met, self._last, self._mean = plain["rules"]
        self._recent.restore(self.judged, plain["recent"])
        self.changes.restore(plain["changes"])


def _scores(n: int, sums: list[float], spread: float) -> list[float | None]:
    """Return the values of `_NAMES`, given the `_sums` and `_spread` of n samples."""
    means = [value / n for value in sums]
    roots = [math.sqrt(mean) if i % 2 else mean for i, mean in enumerate(means)]
    return [*roots, 1.0 - sums[1] / spread if spread > 0.0 else None]


Score: TypeAlias = Hits | Errors


def score_in(plain: Mapping[str, Any]) -> Score:
    """Return the score in a head's saved state; an empty score if the head has none."""
    score = Errors() if "sums" in plain else Hits()
    if "rules" in plain:
        score.restore(plain)
    return score
