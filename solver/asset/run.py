"""ASSET's steps by one rule: the iterates, and the statistics that step lengths depend on."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.iterates import (
    Iterates,
    averaged,
    mirror,
    next_window,
    no_iterates,
    put_columns,
    refresh,
    select_columns,
    widened_iterates,
    with_new_class,
)
from wolfstream.solver.asset.subgradient import Progress, StepRule, no_progress, walk

# The number of steps after which ||gamma||^2 is computed from gamma.
_REFRESHED_EVERY = 4096


def take_steps(
    iterates: Iterates,
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

    iterates: changed.
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
        on = iterates if columns is None else select_columns(iterates, columns)
        walk(on, V[part], target[part], weight[part], rule, progress, scores[part])
        if columns is not None:
            put_columns(iterates, columns, on)
        start = part.stop
        done = int(progress.steps[0])
        if rule.averages and _restarts(rule, done + 1):
            next_window(iterates)
        if done % _REFRESHED_EVERY == 0:
            refresh(iterates)


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


class Run:
    """One-versus-rest linear functions that take steps by one rule, on given features.

    rule: the constants of the steps.
    """

    def __init__(self, rule: StepRule) -> None:
        self.rule = rule
        self.begin(1, 0)

    def begin(self, count: int, width: int) -> None:
        """Return to step 0.

        count: the number of iterates.
        width: the number of features.
        """
        self._iterates = no_iterates(count, width, self.rule.averages)
        self.progress = no_progress()

    @property
    def iterates(self) -> Iterates:
        """The iterates and their averages, of each class and of the class not met yet."""
        if not self.rule.regression and len(self._iterates.b) == 3:
            mirror(self._iterates)
        return self._iterates

    @iterates.setter
    def iterates(self, iterates: Iterates) -> None:
        self._iterates = iterates

    @property
    def horizon(self) -> int | None:
        """The horizon in samples; None if steps shrink for ever."""
        return int(self.rule.horizon) if self.rule.horizon < math.inf else None

    @property
    def steps(self) -> int:
        """j, the number of samples learned."""
        return int(self.progress.steps[0])

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(array.nbytes for array in [*self._iterates, *self.progress])

    def widen(self, width: int) -> None:
        """Append zero columns up to this number of features."""
        self._iterates = widened_iterates(self._iterates, width)

    def meet_class(self) -> None:
        """Add the iterate of a new class, before its first sample."""
        self._iterates = with_new_class(self.iterates)

    def step(
        self,
        V: Float64Array,
        columns: NDArray[np.int64] | None,
        target: Float64Array,
        weight: Float64Array,
        scores: Float64Array,
    ) -> None:
        """Take a step for each of n rows, with the arguments of `windows.take_steps`."""
        take_steps(self._iterates, V, columns, target, weight, self.rule, self.progress, scores)

    def averaged(self) -> tuple[Float64Array, Float64Array]:
        """Return the model of the classes that were met: gamma (classes, D) and b (classes,)."""
        if self.rule.regression:
            return averaged(self._iterates)
        if len(self._iterates.b) != 3:
            return averaged(self._iterates, slice(0, -1))
        gamma, b = averaged(self._iterates, slice(1, 2))  # the first is its mirror image
        return np.concatenate([-gamma, gamma]), np.concatenate([-b, b])

    def state(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the arrays from which `restore` continues; their names begin with the prefix."""
        iterates, progress = self.iterates._asdict(), self.progress._asdict()
        arrays = {f"{prefix}{name}": array.copy() for name, array in iterates.items()}
        return arrays | {f"{prefix}progress_{name}": a.copy() for name, a in progress.items()}

    def restore(self, prefix: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `state` returned for the same prefix."""
        self._iterates = Iterates(*(np.array(state[f"{prefix}{f}"]) for f in Iterates._fields))
        progress = (np.array(state[f"{prefix}progress_{name}"]) for name in Progress._fields)
        self.progress = Progress(*progress)
