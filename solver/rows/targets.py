"""The scale of regression targets: learners learn z = (y - centre) / unit.

The centre and unit are the mean and standard deviation of a stream's first 128 targets, or of all
targets of a batch; a learner's parameters are those of z. In units of y, where ASSET's model is
centre + unit (V gamma + b), this is the problem with lambda / unit and epsilon unit, up to a
factor; the working set's has C / unit^2 and epsilon unit. Raw targets would need other parameters
for every unit: with lambda = 1e-4 and epsilon = 0.1, ASSET learns house prices in dollars with
R^2 -0.00 raw and 0.73 scaled. `benchmarks/README.md` has the measurements.
"""

from typing import NamedTuple

import numpy as np

from wolfstream.solver.arrays import Float64Array

# The scale of a stream is that of this many first samples.
TARGET_SAMPLES = 128
LARGEST_TARGET = 1e100


class TargetScale(NamedTuple):
    """The centre and unit of targets: z = (y - centre) / unit, y = centre + unit z."""

    centre: float = 0.0
    unit: float = 1.0


def target_scale(y: Float64Array) -> TargetScale:
    """Return the mean and standard deviation of targets (n,), the latter 1 if all are equal.

    Nothing overflows for targets up to 1e100.
    """
    unit = float(y.std())
    return TargetScale(float(y.mean()), unit if unit > 0.0 else 1.0)


def check_targets(y: Float64Array) -> None:
    """Raise ValueError for targets beyond 1e100."""
    largest = float(np.abs(y).max(initial=0.0))
    if not largest <= LARGEST_TARGET:
        raise ValueError(f"a target is {largest:.3g}: scale targets below 1e100")
