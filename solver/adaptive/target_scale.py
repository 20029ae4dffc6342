"""Targets in units of their own deviation, whatever units they come in.

    t = (y - centre) / unit, cut off at +-LARGEST

Every learner of a bank is linear in the targets, so that a change of centre and unit can be made
good exactly in its weights: they move whenever the running mean and deviation have left them
behind, by half a deviation or a factor of two.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.scale import (
    CLIPPED,
    moments_arrays,
    moments_from_arrays,
    no_moments,
    standardise,
)

LARGEST = 30.0
# Beyond such a change, nothing that was learned is worth keeping: the centre's move in
# deviations, the unit's factor.
LARGEST_SHIFT, LARGEST_FACTOR = 10.0, 30.0
CENTRE_LIMIT = 1e150


class TargetScale:
    """centre, unit: as above. moments: of the targets so far."""

    def __init__(self) -> None:
        self.centre, self.unit = 0.0, 1.0
        self.moments = no_moments(1)

    def to_units(self, y: Float64Array) -> Float64Array:
        """Targets in the present units."""
        return np.clip((y - self.centre) / self.unit, -LARGEST, LARGEST)

    def from_units(self, t: Float64Array) -> Float64Array:
        """Return what `to_units` undoes."""
        return self.centre + self.unit * t

    def begin(self, y: Float64Array) -> None:
        """Set the units by the first targets, as long as all before them were equal.

        Nothing but the centre has been learned then, so no answer depends on the unit.
        """
        y = np.clip(y, -CENTRE_LIMIT, CENTRE_LIMIT)
        if self.moments.weight[0] == 0.0:
            self.centre = float(y[0])
        if self.moments.square[0] == 0.0:
            distance = np.abs(y - self.centre)
            self.unit = float(distance[distance > 0.0][0]) if distance.any() else 1.0

    def absorb(self, y: Float64Array) -> None:
        """Take targets into the moments; the units stay."""
        standardise(self.moments, y[:, None], CLIPPED)

    def move(self) -> tuple[float, float] | None:
        """Have the units follow the moments, where they are too far off.

        Returns (factor, shift): what was s in the old units is factor s + shift in the new ones.
        """
        scale = float(self.moments.unit[0]) or 1.0
        mean = float(np.clip(self.moments.mean[0] / scale, -CENTRE_LIMIT, CENTRE_LIMIT))
        deviation = min(float(np.sqrt(self.moments.square[0])) / scale, CENTRE_LIMIT)
        unit = deviation if deviation > 0.0 else self.unit
        near = abs(mean - self.centre) <= 0.5 * unit and 0.5 * unit <= self.unit <= 2.0 * unit
        if near:
            return None
        factor, shift = self.unit / unit, (self.centre - mean) / unit
        self.centre, self.unit = mean, unit
        return factor, shift

    @staticmethod
    def jumps(factor: float, shift: float) -> bool:
        """Return whether a move is one after which everything is learned again."""
        small = 1.0 / LARGEST_FACTOR < factor < LARGEST_FACTOR and abs(shift) < LARGEST_SHIFT
        return not small

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        units = {"target_units": np.array([self.centre, self.unit])}
        return moments_arrays("target_", self.moments) | units

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.moments = moments_from_arrays("target_", state)
        self.centre, self.unit = (float(value) for value in state["target_units"])
