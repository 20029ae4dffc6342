"""What learners of endless memory do when a stream changes.

A learner with an infinite horizon is right for ever where nothing changes, and for long wrong
where something did. Where nothing changes, nothing of this happens.

Relabelling: after all labels have changed their meaning, it still knows what belongs together, and
with a machine for each class it need not learn that again: once what it calls j has become k for
every j (`places`), its machine of j becomes that of k. P depends on the rows alone and stays. What
it was taught in the meantime is undone: weights and temperatures are those of at least two
horizons of `places` before. The labels that nearest neighbours remember follow, and so does naive
Bayes (`endless_bayes`), once the first of these learners has found it.

Beginning again: once there is `evidence` that what it has learned is over, it takes over P, W and
temperatures of the learner with the shortest horizon on the same features, and forgets nothing
from there on. The curvature of the temperatures is FRESH_CURVATURE, so that they find their new
values soon.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.combination import Combination
from wolfstream.solver.adaptive.endless_bayes import EndlessBayes
from wolfstream.solver.adaptive.evidence import Evidence
from wolfstream.solver.adaptive.learners import Learners
from wolfstream.solver.adaptive.places import Places
from wolfstream.solver.adaptive.ridge import CHUNK
from wolfstream.solver.adaptive.ridge_parts import RidgePart
from wolfstream.solver.adaptive.weights import for_classes
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled

# Horizons of `places` that are waited before a learner begins again: classes may just have moved.
PATIENCE = 4.0
FRESH_CURVATURE = 1.0


class Earlier(NamedTuple):
    """A learner as it was. W: (losses, K, D). beta, curvature: (losses,) temperatures."""

    W: Float64Array
    beta: Float64Array
    curvature: Float64Array


class EndlessLearner:
    """Watches one learner of endless memory.

    bayes: what follows it. earlier: at most two former states, the older first. age: samples since
    the newer one.
    """

    def __init__(self, own: RidgePart, recent: RidgePart, bayes: EndlessBayes | None) -> None:
        self.own, self.recent, self.bayes = own, recent, bayes
        self.places, self.evidence = Places(), Evidence()
        self.earlier: list[Earlier] = []
        self.age = 0

    def meet(self, classes: int) -> None:
        """Grow to this many classes."""
        self.places.meet(classes)
        self.earlier = [
            state._replace(W=for_classes(state.W[None], classes)[0]) for state in self.earlier
        ]

    def end_chunk(
        self,
        predicted: NDArray[np.int64],
        y: NDArray[np.int64],
        losses: Float64Array,
        combination: Combination,
    ) -> NDArray[np.int64] | None:
        """Act on n more rows; returns the places of classes that have moved.

        predicted, y: (n,) the learner's classes and the labels. losses: (n, experts) of all.
        """
        more = losses[:, self.own.experts] - losses[:, self.recent.experts]
        self.evidence.absorb(more.mean(axis=1))
        found = self.places.absorb(predicted, y)
        wait = max(self.recent.horizon, PATIENCE * self.places.horizon)
        if found is not None:
            earlier = self.earlier[0] if self.earlier else _as_it_is(self.own, combination)
            _become(self.own, combination, _exchanged(earlier, found))
            if self.bayes is not None:
                self.bayes.relabel(found, combination)
        elif self.evidence.is_enough(wait):
            self.own.take_over(self.recent)
            _become(self.own, combination, _begun_again(self.recent, combination))
            if self.bayes is not None:
                self.bayes.forget()
        else:
            self._keep(len(y), combination)
            return None
        self.evidence = Evidence()
        self.earlier, self.age = [], 0
        return found

    def _keep(self, samples: int, combination: Combination) -> None:
        self.age += samples
        if self.places.advantage == 0.0 and self.age >= 2.0 * self.places.horizon:
            self.earlier = [*self.earlier[-1:], _as_it_is(self.own, combination)]
            self.age = 0
            if self.bayes is not None:
                self.bayes.remember(combination)

    def state(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        arrays = self.places.state(name) | self.evidence.state(name)
        arrays[f"{name}_age"] = np.array([self.age], np.int64)
        for field in Earlier._fields:
            fields = [getattr(state, field) for state in self.earlier]
            arrays[f"{name}_{field}"] = np.stack(fields) if fields else np.empty(0)
        return arrays

    def restore(self, name: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.places.restore(name, state)
        self.evidence.restore(name, state)
        self.age = int(state[f"{name}_age"][0])
        fields = zip(*(state[f"{name}_{field}"] for field in Earlier._fields), strict=True)
        self.earlier = [Earlier(*map(np.array, values)) for values in fields]


class EndlessLearners:
    """Watches all of a classifier's."""

    def __init__(self, learners: Learners) -> None:
        self.neighbours, self.bayes = learners.neighbours, None
        if learners.bayes is not None:
            self.bayes = EndlessBayes(learners.bayes, learners.place_of(learners.bayes))
        self.each = [
            EndlessLearner(*pair, None if e else self.bayes)
            for e, pair in enumerate(learners.endless())
        ]
        self._experts = np.array([watcher.own.experts.stop - 1 for watcher in self.each], np.int64)
        self._predicted = np.zeros((CHUNK, len(self.each)), np.int64)
        self._y = np.zeros(CHUNK, np.int64)
        self._pending = 0

    def meet(self, classes: int) -> None:
        """Grow to this many classes."""
        for watcher in self.each:
            watcher.meet(classes)
        if self.bayes is not None:
            self.bayes.meet(classes)

    def absorb(self, scores: Float64Array, classes: int, y: NDArray[np.int64]) -> None:
        """Take note of rows' scores (n, experts, K) of the first classes, and of their labels."""
        place = self._pending
        self._pending += len(y)
        _note(scores, classes, self._experts, self._predicted[place : self._pending])
        self._y[place : self._pending] = y

    def end_chunk(self, losses: Float64Array, combination: Combination) -> None:
        """Act on the losses (CHUNK, experts) of the last rows."""
        n, self._pending = self._pending, 0
        for e, watcher in enumerate(self.each):
            places = watcher.end_chunk(self._predicted[:n, e], self._y[:n], losses, combination)
            if places is not None and self.neighbours is not None:
                self.neighbours.follow(places)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        earlier = [array for watcher in self.each for former in watcher.earlier for array in former]
        tables = [watcher.places.table for watcher in self.each]
        own = sum(array.nbytes for array in [*earlier, *tables, self._predicted, self._y])
        return own + (0 if self.bayes is None else self.bayes.nbytes)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        arrays = {"endless_said": self._predicted[: self._pending].copy()}
        arrays["endless_y"] = self._y[: self._pending].copy()
        for e, watcher in enumerate(self.each):
            arrays |= watcher.state(f"endless{e}")
        return arrays | ({} if self.bayes is None else self.bayes.state())

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self._pending = len(state["endless_y"])
        self._predicted[: self._pending] = state["endless_said"]
        self._y[: self._pending] = state["endless_y"]
        for e, watcher in enumerate(self.each):
            watcher.restore(f"endless{e}", state)
        if self.bayes is not None:
            self.bayes.restore(state)


def _as_it_is(part: RidgePart, combination: Combination) -> Earlier:
    beta, curvature = combination.beta[part.experts], combination.curvature[part.experts]
    return Earlier(part.weights.copy(), beta.copy(), curvature.copy())


def _exchanged(earlier: Earlier, places: NDArray[np.int64]) -> Earlier:
    """Class places[j] has what was class j's machine."""
    W = earlier.W.copy()
    W[:, places] = earlier.W[:, :-1]
    return earlier._replace(W=W)


def _begun_again(recent: RidgePart, combination: Combination) -> Earlier:
    as_it_is = _as_it_is(recent, combination)
    return as_it_is._replace(curvature=np.full_like(as_it_is.curvature, FRESH_CURVATURE))


def _become(part: RidgePart, combination: Combination, new: Earlier) -> None:
    part.replace(new.W)
    combination.beta[part.experts], combination.curvature[part.experts] = new.beta, new.curvature


@compiled
def _note(
    scores: Float64Array,
    classes: int,
    experts: NDArray[np.int64],
    predicted: NDArray[np.int64],
) -> None:
    """predicted[i, e] = argmax_k scores[i, experts[e], k]."""
    for i in range(len(scores)):
        for e in range(len(experts)):
            best, expert_scores = 0, scores[i, experts[e]]
            for k in range(1, classes):
                if expert_scores[k] > expert_scores[best]:
                    best = k
            predicted[i, e] = best
