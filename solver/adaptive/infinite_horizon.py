"""Repairs ridge learners of infinite horizon after a stream has changed (classification).

Such a learner is best for ever on a stream that does not change, and wrong for long after a change.
On a stream that does not change, nothing here acts.

Relabelling: after all labels were permuted, the learner still separates the classes. So once the
permutation is known (`label_permutation`), the weights of class j become those of class k(j). P
depends on the rows alone and stays. What was learned since the change is unscaled: weights and
temperatures are those of at least two horizons of `label_permutation` before. The rows of nearest
neighbours are relabelled (`Experts.follow`), and what other experts have learned with the first of
these learners (`experts.Companion`).

Restart: once there is `evidence` that what it has learned is outdated, the learner copies P, W and
temperatures from the learner with the shortest horizon on the same features. The curvatures of the
temperatures become FRESH_CURVATURE, so that these adapt soon.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.combination import Combination
from wolfstream.solver.adaptive.evidence import Evidence
from wolfstream.solver.adaptive.experts import Companion
from wolfstream.solver.adaptive.label_permutation import LabelPermutation
from wolfstream.solver.adaptive.learners import Learners
from wolfstream.solver.adaptive.ridge import CHUNK, RidgePart, infinite_horizon_pairs
from wolfstream.solver.adaptive.weights import for_classes
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled

# A restart waits this many horizons of `label_permutation`: labels may just have been permuted.
PATIENCE = 4.0
FRESH_CURVATURE = 1.0


class FormerState(NamedTuple):
    """What the learners of one ridge setting had learned at some time."""

    W: Float64Array  # (losses, K, D)
    beta: Float64Array  # (losses,) temperatures
    curvature: Float64Array  # (losses,)


class InfiniteHorizonWatch:
    """Watches and repairs the learners of one ridge setting of infinite horizon.

    own: these learners.
    recent: those with the shortest horizon on the same features.
    companions: what is relabelled and forgotten with them.
    """

    def __init__(
        self, own: RidgePart, recent: RidgePart, companions: Sequence[Companion] = ()
    ) -> None:
        self.own, self.recent, self.companions = own, recent, companions
        self.permutation, self.evidence = LabelPermutation(), Evidence()
        # At most two, the older one first.
        self.former: list[FormerState] = []
        # Samples since the newer one.
        self.age = 0

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes."""
        self.permutation.meet(classes)
        self.former = [
            state._replace(W=for_classes(state.W[None], classes)[0]) for state in self.former
        ]

    def end_chunk(
        self,
        predicted: NDArray[np.int64],
        y: NDArray[np.int64],
        losses: Float64Array,
        combination: Combination,
    ) -> NDArray[np.int64] | None:
        """Count n more rows; repair the learners if the stream has changed.

        predicted: (n,) classes that the last of the learners predicted.
        y: (n,) labels.
        losses: (n, experts) of all experts of the bank.
        combination: its temperatures are repaired, too.

        Returns the permutation (K,) of the labels if it was detected, else None.
        """
        more = losses[:, self.own.experts] - losses[:, self.recent.experts]
        self.evidence.absorb(more.mean(axis=1))
        permutation = self.permutation.absorb(predicted, y)
        wait = max(self.recent.horizon, PATIENCE * self.permutation.horizon)
        if permutation is not None:
            former = self.former[0] if self.former else _state_of(self.own, combination)
            _replace(self.own, combination, _permuted(former, permutation))
            for companion in self.companions:
                companion.relabel(permutation, combination)
        elif self.evidence.is_enough(wait):
            self.own.copy_from(self.recent)
            _replace(self.own, combination, _restarted(self.recent, combination))
            for companion in self.companions:
                companion.forget()
        else:
            self._remember(len(y), combination)
            return None
        self.evidence = Evidence()
        self.former, self.age = [], 0
        return permutation

    def _remember(self, samples: int, combination: Combination) -> None:
        self.age += samples
        if self.permutation.advantage == 0.0 and self.age >= 2.0 * self.permutation.horizon:
            self.former = [*self.former[-1:], _state_of(self.own, combination)]
            self.age = 0
            for companion in self.companions:
                companion.remember(combination)

    def state(self, name: str) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        arrays = self.permutation.state(name) | self.evidence.state(name)
        arrays[f"{name}_age"] = np.array([self.age], np.int64)
        for field in FormerState._fields:
            fields = [getattr(state, field) for state in self.former]
            arrays[f"{name}_{field}"] = np.stack(fields) if fields else np.empty(0)
        return arrays

    def restore(self, name: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned for this name."""
        self.permutation.restore(name, state)
        self.evidence.restore(name, state)
        self.age = int(state[f"{name}_age"][0])
        fields = zip(*(state[f"{name}_{field}"] for field in FormerState._fields), strict=True)
        self.former = [FormerState(*map(np.array, values)) for values in fields]


class InfiniteHorizonWatches:
    """Watches and repairs all ridge learners of infinite horizon of a classifier."""

    def __init__(self, learners: Learners) -> None:
        self._learners = learners
        companions = [e.companion(learners.place_of(e)) for e in learners.each]
        self._companions = [companion for companion in companions if companion is not None]
        self.each = [
            InfiniteHorizonWatch(*pair, () if e else self._companions)
            for e, pair in enumerate(infinite_horizon_pairs(learners.ridge))
        ]
        self._experts = np.array([watcher.own.experts.stop - 1 for watcher in self.each], np.int64)
        self._predicted = np.zeros((CHUNK, len(self.each)), np.int64)
        self._y = np.zeros(CHUNK, np.int64)
        self._pending = 0

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes."""
        for watcher in self.each:
            watcher.meet(classes)
        for companion in self._companions:
            companion.meet(classes)

    def absorb(self, scores: Float64Array, classes: int, y: NDArray[np.int64]) -> None:
        """Record predictions and labels until the end of the chunk.

        scores: (n, experts, at least `classes`).
        classes: how many classes count.
        y: (n,) labels.
        """
        start = self._pending
        self._pending += len(y)
        _write_predictions(scores, classes, self._experts, self._predicted[start : self._pending])
        self._y[start : self._pending] = y

    def end_chunk(self, losses: Float64Array, combination: Combination) -> None:
        """Repair learners if the stream has changed.

        losses: (CHUNK, experts) of the chunk's rows.
        combination: its temperatures are repaired, too.
        """
        n, self._pending = self._pending, 0
        for e, watcher in enumerate(self.each):
            permutation = watcher.end_chunk(
                self._predicted[:n, e], self._y[:n], losses, combination
            )
            if permutation is not None:
                for experts in self._learners.each:
                    experts.follow(permutation)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        former = [array for watcher in self.each for state in watcher.former for array in state]
        tables = [watcher.permutation.table for watcher in self.each]
        own = sum(array.nbytes for array in [*former, *tables, self._predicted, self._y])
        return own + sum(companion.nbytes for companion in self._companions)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        arrays = {"endless_said": self._predicted[: self._pending].copy()}
        arrays["endless_y"] = self._y[: self._pending].copy()
        for e, watcher in enumerate(self.each):
            arrays |= watcher.state(f"endless{e}")
        for companion in self._companions:
            arrays |= companion.state()
        return arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self._pending = len(state["endless_y"])
        self._predicted[: self._pending] = state["endless_said"]
        self._y[: self._pending] = state["endless_y"]
        for e, watcher in enumerate(self.each):
            watcher.restore(f"endless{e}", state)
        for companion in self._companions:
            companion.restore(state)


def _state_of(part: RidgePart, combination: Combination) -> FormerState:
    beta, curvature = combination.beta[part.experts], combination.curvature[part.experts]
    return FormerState(part.weights.copy(), beta.copy(), curvature.copy())


def _permuted(former: FormerState, permutation: NDArray[np.int64]) -> FormerState:
    """Give class permutation[j] the weights of class j."""
    W = former.W.copy()
    W[:, permutation] = former.W[:, :-1]
    return former._replace(W=W)


def _restarted(recent: RidgePart, combination: Combination) -> FormerState:
    state = _state_of(recent, combination)
    return state._replace(curvature=np.full_like(state.curvature, FRESH_CURVATURE))


def _replace(part: RidgePart, combination: Combination, state: FormerState) -> None:
    part.replace(state.W)
    combination.beta[part.experts] = state.beta
    combination.curvature[part.experts] = state.curvature


@compiled
def _write_predictions(
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
