"""ASSET's steps by several rules side by side on the same features, weighted by recent losses.

Run h has the weight w_h in predictions, and in the model, because all are linear in the same
features:

    w_h ~ exp(-RATE L_h),   L_h <- KEPT L_h + loss_h

Losses are mistakes or, in regression, absolute errors in units of the targets' deviation. This is
the exponentially weighted forecaster with discounted losses (Cesa-Bianchi and Lugosi 2006,
section 2.11). It prefers long averages on a constant stream, short ones on a drifting stream, and
the last iterate if labels resemble the preceding ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.run import Run
from wolfstream.solver.asset.subgradient import StepRule

RATE = 0.3
# The weight of a mistake is halved after 700 samples.
KEPT = 0.999
# Bounds the effect of an absurd target.
LARGEST_LOSS = 10.0


class Runs:
    """A run for each rule; `lost` is L, (runs,).

    rules: at least one.
    """

    def __init__(self, rules: Sequence[StepRule]) -> None:
        self.each = [Run(rule) for rule in rules]
        self.lost, self._known = np.zeros(len(rules)), 0

    def begin(self, count: int, width: int) -> None:
        """Return to step 0.

        count: the number of iterates.
        width: the number of features.
        """
        for run in self.each:
            run.begin(count, width)
        self.lost, self._known = np.zeros(len(self.each)), 0

    @property
    def best(self) -> Run:
        """The run with the largest weight."""
        return self.each[int(np.argmin(self.lost))]

    @property
    def weight(self) -> Float64Array:
        """The weights w, (runs,)."""
        return _weights(self.lost)

    @property
    def recent_loss(self) -> Float64Array:
        """Discounted mean losses L / sum of KEPT^age, (runs,); NaN before the first sample."""
        count = (1.0 - KEPT ** float(self.best.steps)) / (1.0 - KEPT)
        return self.lost / count if count > 0.0 else np.full(len(self.each), np.nan)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(run.nbytes for run in self.each) + self.lost.nbytes

    def widen(self, width: int) -> None:
        """Append zero columns up to this number of features."""
        for run in self.each:
            run.widen(width)

    def meet_class(self) -> None:
        """Add the iterate of a new class, before its first sample."""
        for run in self.each:
            run.meet_class()

    def step(
        self,
        V: Float64Array,
        columns: NDArray[np.int64] | None,
        target: Float64Array,
        weight: Float64Array,
        classes: int,
    ) -> Float64Array:
        """Take a step for each of n rows.

        V: see `windows.take_steps`.
        columns: see `windows.take_steps`.
        target: see `windows.take_steps`.
        weight: (n,) sample weights, which the losses of runs ignore.
        classes: how many classes are known; 1 in regression.

        Returns the predictions before each step: (n, classes) scores, or (n, 1) targets.
        """
        scores: Float64Array = np.empty((len(self.each), len(V), classes))
        for run, run_scores in zip(self.each, scores, strict=True):
            run.step(V, columns, target, weight, run_scores)
        if len(self.each) == 1:
            only: Float64Array = scores[0]
            return only
        if self.each[0].rule.regression:
            losses = np.minimum(np.abs(scores[:, :, 0] - target), LARGEST_LOSS)
        else:
            losses = self._mistakes(scores, target)
        shares = _weights(self._add_losses(losses.T))
        answers: Float64Array = np.einsum("hnk,nh->nk", scores, shares)
        return answers

    def _mistakes(self, scores: Float64Array, target: Float64Array) -> Float64Array:
        """Return 1 where a run was wrong, (runs, n); classes not met before have no score."""
        n_known = np.maximum.accumulate(np.concatenate([[float(self._known)], target + 1.0]))
        self._known = int(n_known[-1])
        if n_known[0] < scores.shape[2]:
            unknown = np.arange(scores.shape[2]) >= n_known[:-1, None]
            scores = np.where(unknown, -np.inf, scores)
        wrong: Float64Array = (np.argmax(scores, axis=2) != target).astype(np.float64)
        return wrong

    def _add_losses(self, losses: Float64Array) -> Float64Array:
        """Add losses (n, runs) to L; return L before each."""
        decay = KEPT ** np.arange(len(losses) + 1)[:, None]
        added = np.zeros((len(losses) + 1, len(self.each)))
        np.cumsum(losses / decay[1:], axis=0, out=added[1:])
        lost: Float64Array = decay * (self.lost + added)
        before: Float64Array = lost[:-1]
        self.lost = lost[-1].copy()
        return before

    def averaged(self) -> tuple[Float64Array, Float64Array]:
        """Return the model of the classes that were met: gamma (classes, D) and b (classes,)."""
        models = [run.averaged() for run in self.each]
        if len(models) == 1:
            return models[0]
        gamma = sum(w * value for w, (value, _) in zip(self.weight, models, strict=True))
        b = sum(w * value for w, (_, value) in zip(self.weight, models, strict=True))
        return np.asarray(gamma), np.asarray(b)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return copies of the arrays from which `restore` continues."""
        first, *others = self.each
        arrays = first.state("")
        for number, run in enumerate(others, start=1):
            arrays |= run.state(f"run{number}_")
        return arrays | {"lost": self.lost.copy()} if others else arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state."""
        for number, run in enumerate(self.each):
            run.restore(f"run{number}_" if number else "", state)
        if len(self.each) > 1:
            self.lost, self._known = np.array(state["lost"]), int(state["counts"][0])


def _weights(lost: Float64Array) -> Float64Array:
    """Return the weights w (..., runs) for the discounted losses L (..., runs)."""
    weight: Float64Array = np.exp(-RATE * (lost - lost.min(axis=-1, keepdims=True)))
    weight /= weight.sum(axis=-1, keepdims=True)
    return weight
