"""ASSET's steps with the windows over which its iterates are averaged (P5's N-bar)."""

import math

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.iterates import (
    Machines,
    next_window,
    put_columns,
    refresh,
    select_columns,
)
from wolfstream.solver.asset.subgradient import Progress, StepRule, walk

# The number of steps after which ||gamma||^2 is computed from gamma.
_REFRESHED_EVERY = 4096


def take_steps(
    machines: Machines,
    V: Float64Array,
    columns: NDArray[np.int64] | None,
    target: Float64Array,
    weight: Float64Array,
    rule: StepRule,
    progress: Progress,
    scores: Float64Array,
) -> None:
    """Take a step for each of n rows of features.

    Without `average_from` the windows restart at steps 1, 2, 4, 8, ...: the model is the average
    over the last half to three quarters of all steps. With a horizon N they restart, from step N
    on, at its multiples: the model is the average over the last N to 2N steps. An average from
    N-bar on has one window.

    machines: changed.
    V: (n, D), or (n, columns) if columns are given.
    columns: of V, ascending; V is zero in others. None for all.
    target: (n,) class numbers or scaled targets.
    weight: (n,) sample weights.
    rule: the constants of the steps.
    progress: changed.
    scores: (n, classes), overwritten with the predictions before each step.
    """
    start = 0
    while start < len(target):
        step = int(progress.steps[0]) + 1
        part = slice(start, min(len(target), start + _undisturbed(rule, step)))
        on = machines if columns is None else select_columns(machines, columns)
        walk(on, V[part], target[part], weight[part], rule, progress, scores[part])
        if columns is not None:
            put_columns(machines, columns, on)
        start = part.stop
        done = int(progress.steps[0])
        if rule.averages and _restarts(rule, done + 1):
            next_window(machines)
        if done % _REFRESHED_EVERY == 0:
            refresh(machines)


def _restarts(rule: StepRule, j: int) -> bool:
    """Return whether a window of the average begins with step j."""
    if j >= rule.horizon:
        return j % rule.horizon == 0 and j > rule.average_from
    return rule.average_from == 0 and j & (j - 1) == 0


def _undisturbed(rule: StepRule, j: int) -> int:
    """Return the number of steps from step j on before a window ends or a refresh is due."""
    ahead = [_REFRESHED_EVERY - (j - 1) % _REFRESHED_EVERY, (1 << j.bit_length()) - j]
    if rule.horizon < math.inf:
        ahead.append(int(rule.horizon) - j % int(rule.horizon))
    return min(ahead)
