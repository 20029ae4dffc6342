"""First-order learners with steps of constant length, exact in a block.

    s_i = phi_i W + sum_{j < i} delta_j (phi_j . phi_i),    W <- W + sum_i phi_i' delta_i

    classification   delta = step (y - 1 / (1 + exp(-(s + ||phi||^2 delta))))
    regression       delta = step (y - s) / (1 + ||phi||^2)        (normalised LMS)

phi_j . phi_i is the block's Gram matrix, one product for all steps. A constant step follows
drift; which one is right depends on the drift, so several run side by side.

Logistic steps are implicit (Kulis and Bartlett 2010): the gradient is that after the step. No
step can overshoot then, and two learners with different weights that learn the same sample come
no further apart. Explicit steps longer than 8 / ||phi||^2 do the opposite: rounding errors
doubled every few samples, and blocks of other lengths soon gave other models.

One-versus-rest, y one-hot. A class that appears late starts as a copy of the machine of a class
that never came, so it has the weights that it would have had, had it been known.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.adaptive.features import Span
from solver.adaptive.ridge import logistic
from solver.arrays import Float64Array
from solver.compiled import compiled, inner, larger, smaller

# Targets are scaled and residuals bounded; this is for rows that nobody scaled.
LARGEST_WEIGHT = 1e6


class GradientSetting(NamedTuple):
    """span: the columns to learn on. step: its length; of regression below 2."""

    span: Span
    step: float


class GradientLearners:
    """Learners with different steps on the same columns.

    W: (L, D, K) float64, replaced at each block, so that a view may keep it; of classification
    the last of the K targets is a class that never comes.
    """

    def __init__(
        self, span: Span, steps: Sequence[float], columns: int, *, regression: bool
    ) -> None:
        self.span: Span = span
        self.steps = np.array(steps)
        self.regression = regression
        self.W = np.zeros((len(steps), columns, 1))

    def meet(self, classes: int) -> None:
        """Have so many classes: each new one has the weights of the class that never came."""
        late = np.repeat(self.W[:, :, -1:], classes + 1 - self.W.shape[2], axis=2)
        self.W = np.concatenate([self.W, late], axis=2)

    def absorb(self, Phi: Float64Array, Y: Float64Array) -> Float64Array:
        """The scores (L, n, K) before each row's own target; then the rows are learned."""
        scores = np.ascontiguousarray(Phi @ self.W)
        delta = np.empty_like(scores)
        _take_steps(Phi @ Phi.T, Y, self.steps, self.regression, scores, delta)
        self.W = np.clip(self.W + Phi.T @ delta, -LARGEST_WEIGHT, LARGEST_WEIGHT)
        return scores

    def state(self, name: str) -> dict[str, NDArray[Any]]:
        """W as a plain array."""
        return {f"{name}_W": self.W.copy()}

    def restore(self, name: str, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.W = np.array(state[f"{name}_W"])


@compiled
def _take_steps(
    gram: Float64Array,
    Y: Float64Array,
    steps: Float64Array,
    regression: bool,
    scores: Float64Array,
    delta: Float64Array,
) -> None:
    """From scores of the weights at the block's start to each row's own; delta of each."""
    learners, n, targets = scores.shape
    for e in range(learners):
        for i in range(n):
            for j in range(i):
                product = gram[i, j]
                for k in range(targets):
                    scores[e, i, k] += product * delta[e, j, k]
            for k in range(targets):
                if regression:
                    delta[e, i, k] = steps[e] * (Y[i, k] - scores[e, i, k]) / (1.0 + gram[i, i])
                else:
                    delta[e, i, k] = implicit_step(scores[e, i, k], Y[i, k], steps[e], gram[i, i])


@inner
def implicit_step(score: float, target: float, step: float, square_norm: float) -> float:
    """The solution of  delta = step (target - 1 / (1 + exp(-(score + square_norm delta)))).

    It lies between 0 and the explicit step: Newton's method, kept within that interval.
    """
    explicit = step * (target - logistic(score))
    low, high = smaller(explicit, 0.0), larger(explicit, 0.0)
    delta = explicit / (1.0 + 0.25 * step * square_norm)
    for _ in range(60):
        p = logistic(score + square_norm * delta)
        excess = delta - step * (target - p)
        if excess > 0.0:
            high = delta
        else:
            low = delta
        newton = delta - excess / (1.0 + step * square_norm * p * (1.0 - p))
        after = newton if low <= newton <= high else 0.5 * (low + high)
        if abs(after - delta) <= 1e-13 * abs(delta):
            return after
        delta = after
    return delta
