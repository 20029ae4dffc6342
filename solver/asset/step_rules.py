"""The rules of ASSET's steps, one for each run, from checked parameters."""

import math
from typing import Literal, NamedTuple, TypeAlias

from wolfstream.solver.asset.subgradient import StepRule
from wolfstream.solver.labels import Task

Algorithm = Literal["asset", "asset*"]
# In samples; with None, steps shrink for ever.
Horizon: TypeAlias = Literal["auto"] | int | None
# The runs of "auto": the horizon of each, and whether iterates are averaged. The last iterate is
# for streams whose labels resemble those just before.
AUTO: tuple[tuple[int | None, bool], ...] = (
    (None, True),
    (1000, True),
    (100, True),
    (10_000, False),
)


class StepParameters(NamedTuple):
    """The parameters of `asset.learner.Asset` on which its steps depend."""

    # "classification", with any number of classes, or "regression".
    task: Task
    # "asset" has steps D_X / (D_G sqrt(j)), an intercept and averaged iterates; "asset*" has steps
    # 1 / (lambda j) and neither. With identity features asset* is Pegasos.
    algorithm: Algorithm
    # lambda > 0.
    lam: float
    # Of regression, in units of the targets' standard deviation.
    epsilon: float
    # False makes the last iterate the model. It is noisier, but it follows a stream whose labels
    # resemble the preceding ones: on elec2, standardised, up to 92.6% of its predictions before
    # learning are right; with an average over the last 1000 to 2000 iterates 77%.
    average: bool
    # P5's N-bar. With None the windows of the average restart at steps 1, 2, 4, 8, ... The model is
    # the average, weighted by eta, over the present window and the one before it: the last half to
    # three quarters of all steps. No iterate is stored.
    average_from: int | None
    # N, for streams that drift. No step is shorter than step N, and after it the windows restart at
    # the multiples of N (after average_from, if given), so that the model is the average over the
    # last N to 2N steps. With steps of constant length eta the objective's average over a window is
    # within O(eta D_G^2 + D_X^2 / (eta N)) of the optimum and, against comparators that move by P
    # in all, within O((D_X^2 + D_X P) / (eta N) + eta D_G^2) per step. "auto" has several runs
    # side by side, weighted by their recent losses (`asset.runs`), at the cost of all of them in
    # steps and in memory without the map.
    horizon: Horizon


def step_rules(parameters: StepParameters) -> list[StepRule]:
    """Return the rule of each run.

    Raises ValueError for parameters that do not fit together.
    """
    if parameters.task not in ("classification", "regression"):
        raise ValueError(f"task is {parameters.task!r}; it must be classification or regression")
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
    task, algorithm, lam, epsilon, average, average_from, _ = parameters
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
    return StepRule(lam, task == "regression", epsilon, robust, averages, first, until)
