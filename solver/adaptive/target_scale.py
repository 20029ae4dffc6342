"""Scales targets to their own deviation, whatever units they come in.

    t = (y - centre) / unit, clipped at +-LARGEST

Every learner of a bank is linear in the targets, so that its weights can follow a change of centre
and unit exactly. Both change when the running mean has moved by half a deviation, or the running
deviation by a factor of two.

If the first targets are skewed (`skewed_targets`), learners see logarithms:

    t = (asinh(y / bend) - centre) / unit

Predictions are then bounded by the least target, and by half a deviation beyond the largest: a
small error of a logarithm is a large one of a price.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.bends import bent
from wolfstream.solver.prepare.scale import (
    CLIPPED,
    moments_arrays,
    moments_from_arrays,
    no_moments,
    standardise,
)

LARGEST = 30.0
# Larger changes of the centre, in deviations, and of the unit restart all learning.
LARGEST_SHIFT, LARGEST_FACTOR = 10.0, 30.0
CENTRE_LIMIT = 1e150
# How many deviations predictions of skewed targets may exceed the largest target by.
_BEYOND = 0.5


class Units(NamedTuple):
    """The scale of targets."""

    centre: float = 0.0
    unit: float = 1.0
    bend: float = 0.0  # 0 if targets are not skewed
    lowest: float = 0.0  # least of the bent targets so far
    highest: float = 0.0

    def bent(self, y: Float64Array) -> Float64Array:
        """Return asinh(y / bend); y if targets are not skewed."""
        return bent(y, self.bend) if self.bend else y

    def scaled(self, y: Float64Array) -> Float64Array:
        """Return targets y as t."""
        return np.asarray((self.bent(y) - self.centre) / self.unit)

    def unscaled(self, t: Float64Array) -> Float64Array:
        """Invert `scaled`, within the bounds of skewed targets."""
        u = self.centre + self.unit * t
        return self.bend * np.sinh(self._bounded(u)) if self.bend else u

    def slope(self, t: Float64Array) -> Float64Array:
        """Return the derivative of `unscaled` at t."""
        if not self.bend:
            return np.full(np.shape(t), self.unit)
        u = self.centre + self.unit * t
        return self.unit * self.bend * np.cosh(self._bounded(u))

    def bounds(self) -> tuple[float, float]:
        """Return the least and the largest t that is predicted of skewed targets."""
        return (self.lowest - self.centre) / self.unit, (
            self.highest - self.centre
        ) / self.unit + _BEYOND

    def _bounded(self, u: Float64Array) -> Float64Array:
        return np.clip(u, self.lowest, self.highest + _BEYOND * self.unit)


class RunningTargetScale:
    """Follows the scale of a stream's targets.

    units: the present scale, set by the last `move`.
    moments: of the bent targets so far.
    range: (2,) the least and the largest bent target so far.
    """

    def __init__(self) -> None:
        self.units = Units()
        self.moments = no_moments(1)
        self.range = np.zeros(2)

    def to_units(self, y: Float64Array) -> Float64Array:
        """Return t of targets y in the present units."""
        return np.clip(self.units.scaled(y), -LARGEST, LARGEST)

    def begin(self, y: Float64Array) -> None:
        """Set the units by targets y, if all targets before them were equal.

        Only the centre has been learned then, so that no prediction depends on the unit.
        """
        y = np.clip(self.units.bent(y), -CENTRE_LIMIT, CENTRE_LIMIT)
        if self.moments.weight[0] == 0.0:
            self.units = self.units._replace(centre=float(y[0]))
        if self.moments.square[0] == 0.0:
            distance = np.abs(y - self.units.centre)
            unit = float(distance[distance > 0.0][0]) if distance.any() else 1.0
            self.units = self.units._replace(unit=unit)

    def absorb(self, y: Float64Array) -> None:
        """Include targets in the moments; the units stay."""
        u = self.units.bent(y)
        self.range[:] = min(self.range[0], u.min()), max(self.range[1], u.max())
        standardise(self.moments, u[:, None], CLIPPED)

    def bend(self, bend: float, y: Float64Array) -> None:
        """Restart with logarithms; y: (n,) all targets so far."""
        self.units, self.moments = Units(bend=bend), no_moments(1)
        self.begin(y)
        self.range[:] = self.units.bent(y[:1])
        self.absorb(y)

    def move(self) -> tuple[float, float] | None:
        """Set the units to the moments if they differ too much.

        Returns (factor, shift) such that s in the old units is factor s + shift in the new ones;
        None if the units stay.
        """
        scale = float(self.moments.unit[0]) or 1.0
        mean = float(np.clip(self.moments.mean[0] / scale, -CENTRE_LIMIT, CENTRE_LIMIT))
        deviation = min(float(np.sqrt(self.moments.square[0])) / scale, CENTRE_LIMIT)
        own = self.units
        self.units = own._replace(lowest=float(self.range[0]), highest=float(self.range[1]))
        unit = deviation if deviation > 0.0 else own.unit
        if abs(mean - own.centre) <= 0.5 * unit and 0.5 * unit <= own.unit <= 2.0 * unit:
            return None
        self.units = self.units._replace(centre=mean, unit=unit)
        return own.unit / unit, (own.centre - mean) / unit

    @staticmethod
    def jumps(factor: float, shift: float) -> bool:
        """Return whether a move is so large that learning restarts."""
        small = 1.0 / LARGEST_FACTOR < factor < LARGEST_FACTOR and abs(shift) < LARGEST_SHIFT
        return not small

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        arrays = {"target_units": np.array(self.units), "target_range": self.range.copy()}
        return moments_arrays("target_", self.moments) | arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self.moments = moments_from_arrays("target_", state)
        self.units = Units(*(float(value) for value in state["target_units"]))
        self.range = np.array(state["target_range"])
