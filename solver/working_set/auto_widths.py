"""A working set whose kernel's widths, over the features and over time, follow the stream.

k(x, z) = exp(-gamma ||x - z||^2 - (dt / horizon)^2), where dt is the number of samples between the
two: the influence of members fades, and faster where the stream drifts. Time enters as one more
coordinate of the rows, (t - t_0) / (horizon sqrt(gamma)), so that the set itself is exactly P1's.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.bandwidth import gamma_from_rows
from wolfstream.solver.refits import Refits
from wolfstream.solver.rows.matrix import SparseRows
from wolfstream.solver.rows.sample_weights import Weights, weights_of
from wolfstream.solver.working_set.answers import SetAnswers
from wolfstream.solver.working_set.learner import WorkingSet
from wolfstream.solver.working_set.past import Past
from wolfstream.solver.working_set.predictions import SetPredictions, predicted
from wolfstream.solver.working_set.view import WorkingSetView
from wolfstream.solver.working_set.width_search import NEVER, Search, best_widths, most_work

# gamma is estimated by P2's rule at 2, 4, 8, ... samples, and from here on by forecasts.
_FIRST_FORECAST = 128
_FORECAST_PERIOD = 4096
# From this number of samples on, a search runs beside learning, for half as many samples as have
# been learned, and for at most MOST_BESIDE.
_BESIDE_FROM, MOST_BESIDE = 1024, 1024
# The saved fields of a `Search`.
_SEARCH_ARRAYS = "time", "X", "codes"
# The largest number of samples from which a set is built again.
_MOST_REBUILT = 4096
# After this many horizons, a member no longer counts: exp(-16) is 1e-7.
_HORIZONS_OF_PULL = 4.0
# After this many horizons, coordinates are centred again, long before float32 loses digits.
_HORIZONS_TO_CENTRE = 16.0


class Widths(NamedTuple):
    """The widths of a kernel, and the origin of its time coordinate."""

    gamma: float
    # In samples.
    horizon: float
    # t_0, the number of the sample whose coordinate is 0.
    centre: int

    @property
    def scale(self) -> float:
        """The difference of the coordinates of consecutive samples."""
        return 1.0 / (self.horizon * math.sqrt(self.gamma))

    def timed(self, X: Float64Array, time: NDArray[np.int64] | int) -> Float64Array:
        """Return the rows with their time coordinate, (n, d + 1).

        X: (n, d).
        time: (n,) the samples' numbers, or that of all.
        """
        rows = np.empty((len(X), X.shape[1] + 1))
        rows[:, :-1] = X
        rows[:, -1] = self.scale * (np.asarray(time) - self.centre)
        return rows

    def times(self, rows: Float64Array) -> NDArray[np.int64]:
        """Return the samples' numbers (n,) from the last column of rows (n, d + 1)."""
        return np.rint(rows[:, -1] / self.scale).astype(np.int64) + self.centre


# Rows with more columns, and their time, are predicted in blocks only. A single row of this width
# takes less time by itself than in a product of matrices with calls from Python around it.
WIDEST = 128


class TimedView(NamedTuple):
    """An immutable view of a set, and the time of the next sample."""

    set: WorkingSetView
    widths: Widths
    now: int


def predicted_now(view: TimedView, X: Float64Array) -> SetPredictions:
    """Return the predictions (`predictions.predicted`) for (n, d) rows as the next samples."""
    return predicted(view.set, view.widths.timed(X, view.now), WIDEST)


class AutoWidths:
    """Learns dense rows with class numbers by a working set whose widths follow the stream.

    At 2, 4, 8, ... 64 samples gamma is P2's estimate. At 128, 256, ... 4,096 and each 4,096
    samples from then on, the widths become those that would have forecast the last 512 samples best
    (`width_search`), if these are better by 2% than the present ones: first another gamma, then
    another horizon. The set then starts again with its members and with the kept past. From 1,024
    samples on the search runs beside learning, and its result takes effect 512 or 1,024 samples
    later (`solver.refits`). These points are counts of samples, so the division of the stream into
    calls does not matter.

    build: returns a new set for a gamma.
    gamma: of the kernel; None if it is to be found.
    horizon: in samples; None if it is to be found.
    """

    def __init__(
        self,
        build: Callable[[float], WorkingSet],
        gamma: float | None = None,
        horizon: float | None = None,
    ) -> None:
        self.build = build
        self._fixed = gamma, horizon
        self.widths = Widths(gamma or 1.0, horizon or NEVER, 0)
        self.learner = build(self.widths.gamma)
        self._past = Past()
        # The search that runs beside learning.
        self._search: Search | None = None
        self._refits: Refits[tuple[float, float]] = Refits()

    @property
    def past_nbytes(self) -> int:
        """The bytes of the kept past, and of the samples of a search."""
        return self._past.nbytes + (0 if self._search is None else self._search.nbytes)

    @property
    def search_work_per_sample(self) -> int:
        """The most multiplications of searches per sample, from 4,096 samples on."""
        return most_work(self._find, self._past.columns) // _FORECAST_PERIOD

    @property
    def _find(self) -> tuple[bool, bool]:
        gamma, horizon = self._fixed
        return gamma is None, horizon is None

    def absorb(
        self, X: Float64Array, codes: NDArray[np.int64], weight: Weights = None
    ) -> list[SetAnswers]:
        """Learn samples in order; returns the set's answers to consecutive parts of them.

        X: (n, d) float64.
        codes: (n,) int64 class numbers.
        weight: (n,) sample weights, which the search ignores; None if all are 1.
        """
        answers = []
        start = 0
        while start < len(codes):
            seen, point = self._past.seen, self._next_point()
            stop = min(len(codes), start + min(point, self._refits.due or point) - seen)
            rows, row_codes = X[start:stop], codes[start:stop]
            weights = weights_of(weight, slice(start, stop))
            timed = self.widths.timed(rows, np.arange(seen, seen + stop - start))
            answers.append(self.learner.absorb(timed, row_codes, weight=weights))
            self._past.add(rows, row_codes, weights)
            widths = self._refits.take(self._past.seen)
            if widths is not None:
                self._end_search(widths)
            if self._past.seen == point:
                self._settle()
            start = stop
        return answers

    @property
    def seen(self) -> int:
        """The number of samples so far."""
        return self._past.seen

    def kept_numbers(self) -> NDArray[np.int64]:
        """Return the numbers, from 0 and ascending, of the members and of the kept past."""
        exact = self.learner.store.rows.exact
        assert not isinstance(exact, SparseRows)
        members = self.widths.times(exact[self.learner.store.occupied_slots()])
        return np.union1d(members, self._past.samples()[0])

    @property
    def past(self) -> Past:
        """The kept past; not to be changed."""
        return self._past

    def go_on_from(self, learner: WorkingSet, widths: Widths, past: Past) -> None:
        """Take over a set that others made, its widths, and the kept past."""
        self.learner, self.widths, self._past = learner, widths, past
        self._drop_search()

    def relabel(self, permutation: NDArray[np.int64], since: int) -> None:
        """code <- permutation[code] for the samples before number `since`; start the set again."""
        self._past.relabel(permutation, since)
        self._drop_search()
        self._start_again(self.widths._replace(centre=self._past.seen), (permutation, since))

    def view(self) -> TimedView:
        """Return an immutable view of the present model, for predictions by other threads."""
        return self.timed(self.learner.view())

    def timed(self, members: WorkingSetView) -> TimedView:
        """Return `view`, given the view of the set."""
        return TimedView(members, self.widths, self._past.seen)

    def _next_point(self) -> int:
        """Return the number of samples at which the widths are determined next."""
        seen = self._past.seen
        doubled = max(2, 1 << seen.bit_length())
        period = (seen // _FORECAST_PERIOD + 1) * _FORECAST_PERIOD
        return min(doubled, period)

    def _settle(self) -> None:
        """Determine the widths; start again if they differ, or if the centre is far away."""
        seen, (time, X, codes, _) = self._past.seen, self._past.samples()
        gamma, horizon = self.widths[:2]
        if self._find[0] and seen <= _FIRST_FORECAST:
            gamma = gamma_from_rows(X)
        widths = gamma, horizon
        if seen >= _FIRST_FORECAST:
            search = Search(time, X, codes, widths, self._find, self._ridge)
            if seen < _BESIDE_FROM:
                widths = best_widths(search)
            elif any(self._find):
                self._begin_search(search, seen + min(seen // 2, MOST_BESIDE))
        away = seen - self.widths.centre >= _HORIZONS_TO_CENTRE * horizon
        if seen < 2 * _FIRST_FORECAST or widths != self.widths[:2] or away:
            self._start_again(Widths(*widths, seen))

    @property
    def _ridge(self) -> float:
        return self.learner.ridges.class_ridge(0)

    def _begin_search(self, search: Search, due: int) -> None:
        self._search = search
        self._refits.begin(self._past.seen, due, partial(best_widths, search))

    def _drop_search(self) -> None:
        self._search = None
        self._refits.drop()

    def _end_search(self, widths: tuple[float, float]) -> None:
        """Start again if a search has found other widths."""
        self._search = None
        if widths != self.widths[:2]:
            self._start_again(Widths(*widths, self._past.seen))

    def _start_again(
        self, widths: Widths, relabelling: tuple[NDArray[np.int64], int] | None = None
    ) -> None:
        """Build the set again, with other widths, from its members and the past, in order.

        relabelling: the arguments of `relabel`, which has relabelled the past already.
        """
        time, X, codes, weight = self._past.samples()
        old = self.learner
        slots = old.store.occupied_slots()
        exact = old.store.rows.exact
        assert not isinstance(exact, SparseRows)
        rows = exact[slots]
        members = self.widths.times(rows), rows[:, :-1], old.store.code[slots]
        if relabelling is not None:
            permutation, since = relabelling
            early = np.flatnonzero(members[0] < since)
            members[2][early] = permutation[members[2][early]]
        member_weight = 1.0 / old.store.inverse_weight[slots]
        missing = ~np.isin(members[0], time)
        time = np.concatenate([time, members[0][missing]])
        X = np.concatenate([X, members[1][missing]])
        codes = np.concatenate([codes, members[2][missing]])
        weight = np.concatenate([weight, member_weight[missing]])
        pulling = np.flatnonzero(widths.centre - time <= _HORIZONS_OF_PULL * widths.horizon)
        order = pulling[np.argsort(time[pulling])][-_MOST_REBUILT:]
        self.learner = self.build(widths.gamma)
        self.learner.meet_classes(old.n_classes)
        timed = widths.timed(X[order], time[order])
        self.learner.absorb(timed, codes[order], weight=weight[order])
        self.widths = widths

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which `restore` continues bit for bit."""
        arrays = self.learner.state() | self._past.state("past_")
        if self._search is not None:
            for name in _SEARCH_ARRAYS:
                arrays[f"search_{name}"] = getattr(self._search, name).copy()
            arrays["search_due"] = np.array([self._refits.due], np.int64)
        return arrays | {"widths": np.array(self.widths)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state."""
        gamma, horizon, centre = (float(value) for value in state["widths"])
        self.widths = Widths(gamma, horizon, int(centre))
        self._past.restore("past_", state)
        self.learner = self.build(gamma)
        self.learner.restore(state)
        self._drop_search()
        if "search_due" in state:
            time, X, codes = (np.array(state[f"search_{name}"]) for name in _SEARCH_ARRAYS)
            search = Search(time, X, codes, self.widths[:2], self._find, self._ridge)
            self._begin_search(search, int(state["search_due"][0]))
