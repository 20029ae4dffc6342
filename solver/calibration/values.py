"""The calibration of a regression learner: intervals around predictions, and their coverage.

The conformal score of a target is its distance from the prediction that was made before it. As in
`classes`, everything changes at certain counts of targets alone.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.conformal import (
    CONFIDENCES,
    RECENT,
    first_misses,
    next_misses,
    threshold,
    thresholds,
)
from wolfstream.solver.calibration.points import until_next
from wolfstream.solver.calibration.recent import appended

_LEVELS = len(CONFIDENCES)
# The rows of `recent`: the distance, then for each confidence whether its interval had the target.
_ROWS = 1 + _LEVELS


class ValueConfidence:
    """An immutable view of a calibration.

    misses: (confidences,) alpha of each confidence.
    recent: (1 + confidences, at most 1,000) distances and coverage of the last targets.
    samples: how many targets there were.
    sums: (confidences,) how many targets each interval had.
    widths: (2, confidences) how many intervals were bounded, and the sum of their widths.
    """

    def __init__(
        self,
        misses: Float64Array,
        recent: Float64Array,
        samples: int,
        sums: Float64Array,
        widths: Float64Array,
    ) -> None:
        self.misses, self.recent, self.samples = misses, recent, samples
        self.sums, self.widths = sums, widths

    def half_width(self, confidence: float) -> float:
        """Return half the width of an interval; inf with too few targets."""
        return max(0.0, threshold(self.recent[0], self.misses, confidence))

    def is_mature(self, other: "ValueConfidence") -> bool:
        """Return whether it is based on as many targets as another one, or on 1,000."""
        return self.samples >= min(other.samples, RECENT)

    @property
    def deviation(self) -> float:
        """The root of the mean square of the last distances, of at least one."""
        return float(np.sqrt(np.mean(np.square(self.recent[0]))))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The coverage and the mean width of intervals for some confidences, as plain data."""
        n, last = self.samples, self.recent.shape[1]
        intervals = [
            {
                "confidence": confidence,
                "coverage": float(self.sums[i]) / n if n else None,
                "recent_coverage": float(self.recent[1 + i].sum()) / last if n else None,
                "mean_width": float(self.widths[1, i] / bounded) if bounded else None,
            }
            for i, (confidence, bounded) in enumerate(
                zip(CONFIDENCES, self.widths[0].tolist(), strict=True)
            )
        ]
        return {"samples": n, "intervals": intervals}


class ValueCalibration:
    """Computes the calibration of predictions and targets."""

    def __init__(self) -> None:
        zeros = np.zeros(_LEVELS), np.zeros((2, _LEVELS))
        self._view = ValueConfidence(first_misses(), np.empty((_ROWS, 0)), 0, *zeros)
        self._waiting: list[Float64Array] = []
        self._n_waiting = 0

    def absorb(self, predicted: Float64Array, y: Float64Array) -> None:
        """Add predictions and targets.

        predicted: (n,); NaN where there was no prediction.
        y: (n,) targets.
        """
        distance = np.abs(predicted - y)
        valid = np.isfinite(distance)
        if not valid.all():
            distance = distance[valid]
        start = 0
        while start < len(distance):
            room = until_next(self._view.samples) - self._n_waiting
            self._waiting.append(distance[start : start + room])
            self._n_waiting += len(self._waiting[-1])
            if len(distance) - start >= room:
                self._update()
            start += room

    def view(self) -> ValueConfidence:
        """Return the calibration at the last point; it never changes."""
        return self._view

    def _update(self) -> None:
        """Score the waiting distances by the present calibration, then update it."""
        distance = np.concatenate(self._waiting)
        self._waiting, self._n_waiting = [], 0
        old = self._view
        limits = thresholds(np.sort(old.recent[0]), old.misses)
        # An interval of width 0 contains its own prediction.
        covered = (distance <= np.maximum(limits, 0.0)[:, None]).astype(np.float64)
        plain = (distance <= limits[:, None]).astype(np.float64)
        bounded = np.where(np.isfinite(limits), len(distance), 0.0)
        width = np.where(np.isfinite(limits), 2.0 * np.maximum(limits, 0.0), 0.0)
        self._view = ValueConfidence(
            next_misses(old.misses, plain),
            appended(old.recent, np.vstack([distance, covered]), RECENT),
            old.samples + len(distance),
            old.sums + covered.sum(axis=1),
            old.widths + np.array([bounded, bounded * width]),
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the plain arrays from which `restore` continues bit for bit."""
        view = self._view
        return {
            "samples": np.array([view.samples, view.samples, self._n_waiting], np.int64),
            "sums": view.sums.copy(),
            "widths": view.widths.copy(),
            "misses": view.misses.copy(),
            "recent": view.recent.copy(),
            "waiting": np.concatenate([np.empty(0), *self._waiting]),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state."""
        arrays = {name: np.array(array) for name, array in state.items()}
        self._view = ValueConfidence(
            arrays["misses"],
            arrays["recent"],
            int(arrays["samples"][0]),
            arrays["sums"],
            arrays["widths"],
        )
        self._n_waiting = int(arrays["samples"][2])
        self._waiting = [arrays["waiting"]] if self._n_waiting else []
