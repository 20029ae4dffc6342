"""ASSET's steps by several rules side by side, on the same features; those that err least answer.

What course h says counts w_h, and so does its model, since all are linear in the same features:

    w_h ~ exp(-RATE L_h),   L_h <- KEPT L_h + loss_h

The losses are mistakes or, of numbers, absolute errors in units of the targets' deviation. It is
the exponentially weighted forecaster with discounted losses (Cesa-Bianchi and Lugosi 2006,
section 2.11): long averages where nothing changes, short ones where something does, and the last
iterate where labels resemble those that came just before.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.course import Course
from wolfstream.solver.asset.subgradient import StepRule

RATE = 0.3
# A mistake counts half after 700 samples.
KEPT = 0.999
# An absurd target counts as at most this many mistakes.
LARGEST_LOSS = 10.0


class Courses:
    """Courses with these rules.

    lost: (courses,) L as above. They know the classes of the samples that they learned.
    """

    def __init__(self, rules: Sequence[StepRule]) -> None:
        self.each = [Course(rule) for rule in rules]
        self.lost, self._known = np.zeros(len(rules)), 0

    def begin(self, count: int, width: int) -> None:
        """Return to step 0. count: of machines. width: the number of features."""
        for course in self.each:
            course.begin(count, width)
        self.lost, self._known = np.zeros(len(self.each)), 0

    @property
    def best(self) -> Course:
        """The one that counts most."""
        return self.each[int(np.argmin(self.lost))]

    @property
    def weight(self) -> Float64Array:
        """(courses,) w as above."""
        return _weights(self.lost)

    @property
    def recent_loss(self) -> Float64Array:
        """(courses,) mean losses, a sample counting half after 700; NaN before the first one."""
        count = (1.0 - KEPT ** float(self.best.steps)) / (1.0 - KEPT)
        return self.lost / count if count > 0.0 else np.full(len(self.each), np.nan)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(course.nbytes for course in self.each) + self.lost.nbytes

    def widen(self, width: int) -> None:
        """Add columns up to this number of features."""
        for course in self.each:
            course.widen(width)

    def meet_class(self) -> None:
        """Add a machine for a class before its samples come."""
        for course in self.each:
            course.meet_class()

    def step(
        self,
        V: Float64Array,
        columns: NDArray[np.int64] | None,
        target: Float64Array,
        weight: Float64Array,
        classes: int,
    ) -> Float64Array:
        """Take a step for each of n rows, on features as in `windows.take_steps`.

        weight: (n,) of the samples; the losses of courses count each once.

        Returns the predictions before each step, (n, classes), or (n, 1) targets.
        """
        scores: Float64Array = np.empty((len(self.each), len(V), classes))
        for course, course_scores in zip(self.each, scores, strict=True):
            course.step(V, columns, target, weight, course_scores)
        if len(self.each) == 1:
            only: Float64Array = scores[0]
            return only
        if self.each[0].rule.regression:
            losses = np.minimum(np.abs(scores[:, :, 0] - target), LARGEST_LOSS)
        else:
            losses = self._mistakes(scores, target)
        shares = _weights(self._count(losses.T))
        answers: Float64Array = np.einsum("hnk,nh->nk", scores, shares)
        return answers

    def _mistakes(self, scores: Float64Array, target: Float64Array) -> Float64Array:
        """(courses, n) 1 where a course was wrong, of the classes that had come before the row."""
        n_known = np.maximum.accumulate(np.concatenate([[float(self._known)], target + 1.0]))
        self._known = int(n_known[-1])
        if n_known[0] < scores.shape[2]:
            unknown = np.arange(scores.shape[2]) >= n_known[:-1, None]
            scores = np.where(unknown, -np.inf, scores)
        wrong: Float64Array = (np.argmax(scores, axis=2) != target).astype(np.float64)
        return wrong

    def _count(self, losses: Float64Array) -> Float64Array:
        """Take in losses (n, courses); returns L before each."""
        decay = KEPT ** np.arange(len(losses) + 1)[:, None]
        more = np.zeros((len(losses) + 1, len(self.each)))
        np.cumsum(losses / decay[1:], axis=0, out=more[1:])
        lost: Float64Array = decay * (self.lost + more)
        before: Float64Array = lost[:-1]
        self.lost = lost[-1].copy()
        return before

    def averaged(self) -> tuple[Float64Array, Float64Array]:
        """The model: gamma (machines, D) and b (machines,) without that of the class not met."""
        models = [course.averaged() for course in self.each]
        if len(models) == 1:
            return models[0]
        gamma = sum(w * value for w, (value, _) in zip(self.weight, models, strict=True))
        b = sum(w * value for w, (_, value) in zip(self.weight, models, strict=True))
        return np.asarray(gamma), np.asarray(b)

    def state(self) -> dict[str, NDArray[Any]]:
        """Copies of the arrays from which `restore` continues."""
        first, *others = self.each
        arrays = first.state("")
        for number, course in enumerate(others, start=1):
            arrays |= course.state(f"course{number}_")
        return arrays | {"lost": self.lost.copy()} if others else arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state."""
        for number, course in enumerate(self.each):
            course.restore(f"course{number}_" if number else "", state)
        if len(self.each) > 1:
            self.lost, self._known = np.array(state["lost"]), int(state["counts"][0])


def _weights(lost: Float64Array) -> Float64Array:
    """w of (..., courses) L."""
    weight: Float64Array = np.exp(-RATE * (lost - lost.min(axis=-1, keepdims=True)))
    weight /= weight.sum(axis=-1, keepdims=True)
    return weight
