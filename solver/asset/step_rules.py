"""Which rules the steps of ASSET follow: one for each course, from checked parameters."""

import math
from typing import Literal, NamedTuple, TypeAlias

from solver.asset.subgradient import StepRule

Algorithm = Literal["asset", "asset*"]
# In samples; with None, steps shrink for ever.
Horizon: TypeAlias = Literal["auto"] | int | None
# The courses of "auto": the horizon of each, and whether iterates are averaged. The last iterate is
# for streams whose labels resemble those just before.
AUTO: tuple[tuple[int | None, bool], ...] = (
    (None, True),
    (1000, True),
    (100, True),
    (10_000, False),
)


class StepParameters(NamedTuple):
    """The parameters of `asset.learner.Asset` on which its steps depend."""

    regression: bool
    algorithm: Algorithm
    lam: float
    epsilon: float
    average: bool
    average_from: int | None
    horizon: Horizon


def step_rules(parameters: StepParameters) -> list[StepRule]:
    """Return the rule of each course. Raises ValueError for parameters that do not fit together."""
    if parameters.horizon != "auto":
        return [_step_rule(parameters, parameters.horizon)]
    averages = parameters.average and parameters.average_from is None
    if parameters.algorithm != "asset" or not averages:
        raise ValueError(
            'horizon "auto" chooses between averages: algorithm must be asset, average True, and '
            "average_from None"
        )
    return [_step_rule(parameters._replace(average=average), number) for number, average in AUTO]


def _step_rule(parameters: StepParameters, horizon: int | None) -> StepRule:
    regression, algorithm, lam, epsilon, average, average_from, _ = parameters
    if algorithm not in ("asset", "asset*"):
        raise ValueError(f"algorithm is {algorithm!r}; it must be asset or asset*")
    if not 0.0 < lam < math.inf:
        raise ValueError(
            f"lam is {lam}; it must be a finite number above zero: the steps of asset* are "
            "1 / (lam j), and those of asset as long as the feasible set is wide, 1 / sqrt(lam)"
        )
    if not 0.0 <= epsilon < math.inf:
        raise ValueError(f"epsilon is {epsilon}; it must be a finite number, at least zero")
    for name, count in {"average_from": average_from, "horizon": horizon}.items():
        if count is not None and count < 1:
            raise ValueError(f"{name} is {count}; it must be at least 1")
    robust = algorithm == "asset"
    averages, first = robust and average, average_from or 0
    if first and not averages:
        raise ValueError("average_from is given, but nothing is averaged: leave it out")
    # A float also for an integer horizon, so that one compilation is enough.
    until = float(horizon or math.inf)
    return StepRule(lam, regression, epsilon, robust, averages, first, until)
