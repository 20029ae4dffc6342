"""A search for the widths of a kernel over the features and over time, one forecast at a time."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.forecast import Forecast, one_hot
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


class WidthSearch:
    """Finds the widths (gamma, horizon) that would have forecast the last samples best.

    First gamma is compared with others, then the horizon with others at the gamma that was found.

    time, X, codes: the samples, as `Past.samples` has them. widths: the present ones, and `find`
    says which of them may change. ridge: of the forecasts. errors: that have been computed.
    """

    def __init__(
        self,
        samples: tuple[NDArray[np.int64], Float64Array, NDArray[np.int64]],
        widths: tuple[float, float],
        find: tuple[bool, bool],
        ridge: float,
        errors: Sequence[float] = (),
    ) -> None:
        self.time, self.X, self.codes = samples
        self.widths, self._find, self._ridge = widths, find, max(ridge, _LEAST_RIDGE)
        self._errors = list(errors)
        # Of the next error: how far it is, and how many of its parts are done.
        self._forecast: Forecast | None = None
        self._done = 0

    @property
    def nbytes(self) -> int:
        """The bytes of the samples."""
        return self.time.nbytes + self.X.nbytes + self.codes.nbytes

    @property
    def found(self) -> tuple[float, float] | None:
        """The widths; None while errors are left to compute."""
        widths, _ = self._look()
        return widths

    def step(self) -> None:
        """Compute one more error, which takes one factorisation, or what is left to do of it."""
        forecast = self._started()
        while forecast.error is None:
            forecast.go_on()
        self._errors.append(forecast.error)
        self._forecast, self._done = None, 0

    def prepare_step(self, share: float) -> None:
        """Do so much of the next `step`, from 0 to 1, unless it is done.

        Neither what is found nor the state changes.
        """
        forecast = self._started()
        while self._done < int(share * forecast.parts):
            forecast.go_on()
            self._done += 1

    def _started(self) -> Forecast:
        if self._forecast is None:
            _, following = self._look()
            assert following is not None
            self._forecast = self._new_forecast(*following)
        return self._forecast

    def _look(self) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
        """Return the widths that were found, or those whose error is needed next."""
        errors = self._errors
        gamma, horizon = self.widths
        if not any(self._find) or self.codes.min() == self.codes.max():
            return self.widths, None
        if not errors:
            return None, self.widths
        gammas = [gamma * factor for factor in _FACTORS] if self._find[0] else []
        horizons = _other_horizons(horizon) if self._find[1] else []
        first, others = errors[1 : 1 + len(gammas)], errors[1 + len(gammas) :]
        if len(first) < len(gammas):
            return None, (gammas[len(first)], horizon)
        least, gamma = _better(errors[0], gamma, first, gammas)
        if len(others) < len(horizons):
            return None, (gamma, horizons[len(others)])
        return (gamma, _better(least, horizon, others, horizons)[1]), None

    def _new_forecast(self, gamma: float, horizon: float) -> Forecast:
        time = (self.time - self.time[0])[:, None] / horizon
        rows = np.concatenate([math.sqrt(gamma) * self.X, time], axis=1)
        judged = min(RECENT, len(self.codes) // 2)
        return Forecast(rows, one_hot(self.codes), self._ridge, judged)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the samples and the errors, by name."""
        arrays = {"time": self.time, "X": self.X, "codes": self.codes}
        arrays["errors"] = np.array(self._errors, np.float64)
        return {f"search_{name}": array.copy() for name, array in arrays.items()}


def most_work(find: tuple[bool, bool], columns: int) -> int:
    """The most multiplications of a search: for each error, a kernel matrix and its factor."""
    n, widths = RECENT + EARLIER, sum(find) * len(_FACTORS)
    return (1 + widths) * (n**3 // 3 + n**2 * (columns + 1) // 2) if widths else 0


def _better(
    least: float, present: float, errors: list[float], others: list[float]
) -> tuple[float, float]:
    """Return the error and the width that is worth a change, or the present ones."""
    best, width = min(zip(errors, others, strict=True), default=(math.inf, present))
    return (best, width) if best < _WORTH_A_CHANGE * least else (least, present)


def _other_horizons(horizon: float) -> list[float]:
    """Return the horizons to compare with the present one."""
    if horizon == NEVER:
        return [_LONGEST, 2048.0, 512.0]
    near = [horizon * factor for factor in (0.5, 2.0, 4.0)]
    return [NEVER, *(h for h in near if _SHORTEST <= h <= _LONGEST)]
