"""Classes that change places: learners of endless memory go on with their machines exchanged.

After all labels have changed their meaning, an old learner is still right about what belongs
together, and with a machine for each class it need not learn that again: once what it calls j has
become k for every j, its machine of j becomes that of k. P depends on the rows alone and stays.

Of what such a learner says and what the label then is, a table is kept, which forgets with a
horizon of CLASS_HORIZON samples a class. The label that mostly comes when the learner says j is
its place. Places are taken over once

- predictions put into the places of the samples before would have been right ADVANTAGE samples
  more often than as they are, less MARGIN of all samples, since the last time that they were not;
- every place is that of one class, and none has changed in the last chunk of samples.

What the learner was taught in the meantime is undone: its weights and temperatures are those of
at least two horizons before. Where classes do not change places, nothing changes at all.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.adaptive.combination import Combination
from solver.adaptive.learners import Endless, Learners
from solver.adaptive.ridge import CHUNK
from solver.adaptive.weights import for_classes
from solver.arrays import Float64Array

CLASS_HORIZON, LEAST_HORIZON = 16.0, 64.0
ADVANTAGE, MARGIN = 24.0, 0.2


class Places:
    """Where a learner's classes are now.

    table: (K, K), row what the learner said, column the label. advantage: as above.
    """

    def __init__(self) -> None:
        self.table, self.advantage = np.zeros((0, 0)), 0.0

    @property
    def horizon(self) -> float:
        """In samples."""
        return max(LEAST_HORIZON, CLASS_HORIZON * len(self.table))

    def absorb(self, said: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """The place (K,) of each class, when they are to be taken over; from then on it is said.

        said, y: (n,) the learner's classes for rows, and their labels.
        """
        classes, before = len(self.table), self._most_frequent()
        flat = np.bincount(said * classes + y, minlength=classes * classes)
        counts = flat.reshape(classes, classes)
        self.table = np.exp(-len(y) / self.horizon) * self.table + counts
        more = counts[np.arange(classes), before].sum() - np.trace(counts)
        self.advantage = max(0.0, self.advantage + float(more) - MARGIN * len(y))
        places = self._most_frequent()
        settled = np.array_equal(places, before) and np.bincount(places).max() == 1
        if self.advantage <= ADVANTAGE or not settled:
            return None
        self.table[places], self.advantage = self.table.copy(), 0.0
        return places

    def _most_frequent(self) -> NDArray[np.int64]:
        said = self.table.any(axis=1)
        return np.where(said, np.argmax(self.table, axis=1), np.arange(len(self.table)))


class Earlier(NamedTuple):
    """A learner as it was. W: (losses, K, D). beta, curvature: (losses,) temperatures."""

    W: Float64Array
    beta: Float64Array
    curvature: Float64Array


class Relabelling:
    """Watches all learners of endless memory of a bank.

    earlier: of each at most two former states, the older first. age: samples since the newer one.
    """

    def __init__(self, learners: Learners) -> None:
        self.endless = learners.endless()
        self.places = [Places() for _ in self.endless]
        self.earlier: list[list[Earlier]] = [[] for _ in self.endless]
        self.age = np.zeros(len(self.endless), np.int64)
        self._experts = [one.experts.stop - 1 for one in self.endless]
        self._said = np.zeros((CHUNK, len(self.endless)), np.int64)
        self._y = np.zeros(CHUNK, np.int64)
        self._pending = 0

    def meet(self, classes: int) -> None:
        """Have so many classes."""
        for places in self.places:
            more = classes - len(places.table)
            places.table = np.pad(places.table, ((0, more), (0, more)))
        self.earlier = [
            [one._replace(W=for_classes(one.W[None], classes)[0]) for one in pair]
            for pair in self.earlier
        ]

    def absorb(self, scores: Float64Array, y: NDArray[np.int64]) -> None:
        """Take note of the scores (n, experts, K) of rows and their labels."""
        part = slice(self._pending, self._pending + len(y))
        self._said[part] = np.argmax(scores[:, self._experts], axis=2)
        self._y[part] = y
        self._pending = part.stop

    def end_chunk(self, combination: Combination) -> None:
        """Have learners go on with machines exchanged, where their classes changed places."""
        said, y = self._said[: self._pending], self._y[: self._pending]
        self._pending = 0
        for e, (one, places) in enumerate(zip(self.endless, self.places, strict=True)):
            found = places.absorb(said[:, e], y)
            if found is not None:
                _exchange(one, combination, self.earlier[e], found)
                self.earlier[e] = []
            self.age[e] += len(y)
            if places.advantage == 0.0 and self.age[e] >= 2.0 * places.horizon:
                self.earlier[e] = [*self.earlier[e][-1:], _as_it_is(one, combination)]
                self.age[e] = 0

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as plain arrays."""
        said, y = self._said[: self._pending].copy(), self._y[: self._pending].copy()
        arrays: dict[str, NDArray[Any]] = {
            "relabelling_said": said,
            "relabelling_y": y,
            "relabelling_age": self.age.copy(),
        }
        for e, places in enumerate(self.places):
            name = f"relabelling{e}"
            arrays[f"{name}_table"] = places.table.copy()
            arrays[f"{name}_advantage"] = np.array([places.advantage])
            for field in Earlier._fields:
                fields = [getattr(one, field) for one in self.earlier[e]]
                arrays[f"{name}_{field}"] = np.stack(fields) if fields else np.empty(0)
        return arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self._pending = len(state["relabelling_y"])
        self._said[: self._pending] = state["relabelling_said"]
        self._y[: self._pending] = state["relabelling_y"]
        self.age = np.array(state["relabelling_age"])
        for e, places in enumerate(self.places):
            name = f"relabelling{e}"
            places.table = np.array(state[f"{name}_table"])
            places.advantage = float(state[f"{name}_advantage"][0])
            fields = zip(*(state[f"{name}_{field}"] for field in Earlier._fields), strict=True)
            self.earlier[e] = [Earlier(*(np.array(field) for field in one)) for one in fields]


def _as_it_is(one: Endless, combination: Combination) -> Earlier:
    beta, curvature = combination.beta[one.experts], combination.curvature[one.experts]
    return Earlier(one.learners.W[one.setting].copy(), beta.copy(), curvature.copy())


def _exchange(
    one: Endless, combination: Combination, earlier: list[Earlier], places: NDArray[np.int64]
) -> None:
    """Have class places[j] use what was class j's machine in the oldest of the earlier states."""
    W, beta, curvature = earlier[0] if earlier else _as_it_is(one, combination)
    exchanged = W.copy()
    exchanged[:, places] = W[:, :-1]
    one.learners.W = one.learners.W.copy()
    one.learners.W[one.setting] = exchanged
    combination.beta[one.experts], combination.curvature[one.experts] = beta, curvature
