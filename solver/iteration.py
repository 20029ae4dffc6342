"""The one loop of all batch solvers: iterate until converged, interrupted or out of steps."""

from collections.abc import Callable
from typing import NamedTuple


class Advance(NamedTuple):
    """How far a solver came: the number of steps, and whether it has converged."""

    n_steps: int
    converged: bool


def iterate(
    advance: Callable[[int], Advance], observe: Callable[[int], bool | None], max_steps: int
) -> Advance:
    """Advance until the solver converges, takes `max_steps` steps or is interrupted.

    advance: takes at least one step, unless it has converged, and at most the given number.
    observe: called after each advance with the number of steps so far; the run ends where it
        returns True, and whatever it raises is passed on.

    Returns the steps of the whole run, and whether it converged.
    """
    n_steps, converged, stopped = 0, False, False
    while not (converged or stopped) and n_steps < max_steps:
        taken, converged = advance(max_steps - n_steps)
        n_steps += taken
        stopped = bool(observe(n_steps))
    return Advance(n_steps, converged)
