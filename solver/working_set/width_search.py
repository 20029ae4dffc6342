"""A search for the widths of a kernel over the features and over time, by forecasts."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.forecast import forecast_error, one_hot
from wolfstream.solver.refits import give_way
from wolfstream.solver.working_set.past import EARLIER, RECENT

# A horizon beyond all streams, at which no member ever fades. It is a number like the others, so
# that a stored row's coordinate says when it came.
NEVER = 2.0**40
_LONGEST, _SHORTEST = 8192.0, 256.0
# gamma is compared with these multiples of itself.
_FACTORS = (0.25, 0.5, 2.0, 8.0)
# Widths are changed where that lowers the error of the forecasts to this share.
_WORTH_A_CHANGE = 0.98
# With equal rows, a smaller ridge could be lost in the rounding of 1,024 kernel values near 2.
_LEAST_RIDGE = 1e-6


class Search(NamedTuple):
    """The input of a search: n samples, and the present widths."""

    # The samples, (n,), (n, d) and (n,), as `Past.samples` returns them.
    time: NDArray[np.int64]
    X: Float64Array
    codes: NDArray[np.int64]
    # The present (gamma, horizon).
    widths: tuple[float, float]
    # Which of the two may change.
    find: tuple[bool, bool]
    # The ridge of the forecasts.
    ridge: float

    @property
    def nbytes(self) -> int:
        """The bytes of the samples."""
        return self.time.nbytes + self.X.nbytes + self.codes.nbytes


def best_widths(search: Search) -> tuple[float, float]:
    """Return the widths (gamma, horizon) that would have forecast the last samples best.

    First gamma is compared with others, then the horizon with others at the best gamma. The present
    widths stay unless others lower the error by 2%, and while all samples have one class.
    """
    gamma, horizon = search.widths
    if not any(search.find) or search.codes.min() == search.codes.max():
        return search.widths
    least = _error(search, gamma, horizon)
    if search.find[0]:
        gammas = [gamma * factor for factor in _FACTORS]
        errors = [_error(search, other, horizon) for other in gammas]
        least, gamma = _better(least, gamma, errors, gammas)
    if search.find[1]:
        horizons = _other_horizons(horizon)
        errors = [_error(search, gamma, other) for other in horizons]
        least, horizon = _better(least, horizon, errors, horizons)
    return gamma, horizon


def _error(search: Search, gamma: float, horizon: float) -> float:
    """Return the error of forecasts of the last samples with these widths."""
    give_way()
    time = (search.time - search.time[0])[:, None] / horizon
    rows = np.concatenate([math.sqrt(gamma) * search.X, time], axis=1)
    judged = min(RECENT, len(search.codes) // 2)
    return forecast_error(rows, one_hot(search.codes), max(search.ridge, _LEAST_RIDGE), judged)


def most_work(find: tuple[bool, bool], columns: int) -> int:
    """Return the most multiplications of a search: for each error, a Gram matrix and its factor."""
    n, widths = RECENT + EARLIER, sum(find) * len(_FACTORS)
    return (1 + widths) * (n**3 // 3 + n**2 * (columns + 1) // 2) if widths else 0


def _better(
    least: float, present: float, errors: list[float], others: list[float]
) -> tuple[float, float]:
    """Return the best other width and its error if they are worth a change, else the present."""
    best, width = min(zip(errors, others, strict=True), default=(math.inf, present))
    return (best, width) if best < _WORTH_A_CHANGE * least else (least, present)


def _other_horizons(horizon: float) -> list[float]:
    """Return the horizons to compare with the present one."""
    if horizon == NEVER:
        return [_LONGEST, 2048.0, 512.0]
    near = [horizon * factor for factor in (0.5, 2.0, 4.0)]
    return [NEVER, *(h for h in near if _SHORTEST <= h <= _LONGEST)]
