"""Steps of ASSET in any number, with what happens between them: windows of averages end."""

import math

from solver.features import Columns
from solver.machines import Machines, next_window, put_columns, refresh, select_columns
from solver.rows import Float64Array
from solver.subgradient import Progress, StepRule, walk

_REFRESHED_EVERY = 4096


def take_steps(
    machines: Machines,
    V: Float64Array,
    columns: Columns | None,
    target: Float64Array,
    rule: StepRule,
    progress: Progress,
    scores: Float64Array,
) -> None:
    """`subgradient.walk` over the features V of n rows, (n, D), or (n, columns) of theirs.

    Without `average_from` windows restart at steps 1, 2, 4, 8, ...: the model is the average over
    the last half to three quarters of all steps. With a horizon N they restart, from step N on,
    at its multiples, so that it is over the last N to 2N. An average from N-bar on has one window.
    """
    start = 0
    while start < len(target):
        step = int(progress.steps[0]) + 1
        part = slice(start, min(len(target), start + _undisturbed(rule, step)))
        on = machines if columns is None else select_columns(machines, columns)
        walk(on, V[part], target[part], rule, progress, scores[part])
        if columns is not None:
            put_columns(machines, columns, on)
        start = part.stop
        done = int(progress.steps[0])
        if rule.averages and _restarts(rule, done + 1):
            next_window(machines)
        if done % _REFRESHED_EVERY == 0:
            refresh(machines)


def _restarts(rule: StepRule, j: int) -> bool:
    """Whether a window of averages begins with step j."""
    if j >= rule.horizon:
        return j % rule.horizon == 0 and j > rule.average_from
    return rule.average_from == 0 and j & (j - 1) == 0


def _undisturbed(rule: StepRule, j: int) -> int:
    """How many steps, from step j on, nothing interrupts."""
    ahead = [_REFRESHED_EVERY - (j - 1) % _REFRESHED_EVERY, (1 << j.bit_length()) - j]
    if rule.horizon < math.inf:
        ahead.append(int(rule.horizon) - j % int(rule.horizon))
    return min(ahead)
