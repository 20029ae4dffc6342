"""First-order learners with steps of constant length.

    s = phi W,   W <- W + phi' delta

    classification   delta = step (y - 1 / (1 + exp(-(s + ||phi||^2 delta))))
    regression       delta = step (y - s) / (1 + ||phi||^2)        (normalised LMS)

A constant step follows drift. The best step depends on the drift, so several run side by side.

Logistic steps are implicit (Kulis and Bartlett 2010): the gradient is that after the step. So no
step overshoots, and two learners with different weights that learn the same sample come no further
apart. Explicit steps longer than 8 / ||phi||^2 do the opposite: rounding errors double every few
samples, and other lengths of blocks soon give other models.

One-versus-rest, y one-hot. A row of weight w takes a step w times as long. In regression, if
w > 1, delta = w step (y - s) / (1 + ||phi||^2 (1 + (w - 1) step)), which never overshoots.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.experts import Experts
from wolfstream.solver.adaptive.features import Span
from wolfstream.solver.adaptive.ridge import CHUNK, logistic
from wolfstream.solver.adaptive.weights import add, dot, for_classes, in_order
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import inner, larger, smaller

# Bounds weights where rows are not scaled; targets are scaled and residuals bounded.
LARGEST_WEIGHT = 1e6


class GradientArrays(NamedTuple):
    """What learning reads and writes; fields are those of `GradientLearners`."""

    steps: Float64Array
    W: Float64Array
    norm: Float64Array  # (CHUNK,) reused memory


NO_GRADIENT = GradientArrays(np.empty(0), np.empty((0, 0, 0, 0)), np.empty(0))


class GradientLearners(Experts):
    """Learners with different steps on the same columns.

    name: prefix of the names of saved arrays.
    span: the columns of phi that they use, `columns` in number.
    steps: (L,) step sizes.
    W: (1, L, K, columns) as in `weights`; updated in place.
    """

    def __init__(self, name: str, span: Span, steps: Sequence[float], columns: int) -> None:
        self._name, self.steps = name, np.array(steps)
        self.kinds = [{"learner": "gradient", "features": span, "step": step} for step in steps]
        self.W = np.zeros((1, len(steps), 1, columns))
        self._norm = np.empty(CHUNK)

    @property
    def arrays(self) -> GradientArrays:
        """The arrays that learning reads and writes."""
        return GradientArrays(self.steps, self.W, self._norm)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        return self.W.nbytes

    @property
    def work(self) -> int:
        """Multiplications of a score and a step of each learner."""
        return 2 * self.W.size

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes."""
        self.W = for_classes(self.W, classes)

    def rescale(self, factor: float, shift: float) -> None:
        """Make every learner predict factor s + shift where it predicted s."""
        self.W = factor * self.W
        self.W[..., 0] += shift

    def state(self) -> dict[str, NDArray[Any]]:
        """Return W as a plain array."""
        return {f"{self._name}_W": self.W.copy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self.W = np.array(state[f"{self._name}_W"], order="C")

    def merge(
        self,
        each: Sequence["GradientLearners"],
        orders: Sequence[NDArray[np.int64]],
        share: Float64Array,
    ) -> None:
        """Average the weights, weighted by the number of samples."""
        weights = [in_order(other.W, order) for other, order in zip(each, orders, strict=True)]
        self.W = np.tensordot(share, np.array(weights), axes=1)


@inner
def learn_gradient(
    gradient: GradientArrays,
    regression: bool,
    Phi: Float64Array,
    Y: Float64Array,
    weight: Float64Array,
    first: int,
    scores: Float64Array,
) -> None:
    """Write the scores of rows, each before its target is learned.

    Arguments are those of `ridge.learn_ridge`.
    """
    steps, norm, columns = gradient.steps, gradient.norm, gradient.W.shape[3]
    for i in range(len(Phi)):
        norm[i] = dot(Phi[i, :columns], Phi[i, :columns])
    for e in range(len(steps)):
        for k in range(Y.shape[1]):
            w = gradient.W[0, e, k]
            for i in range(len(Phi)):
                score = dot(w, Phi[i, :columns])
                scores[i, first + e, k] = score
                step = weight[i] * steps[e]
                if regression:
                    damping = 1.0 + larger(weight[i] - 1.0, 0.0) * steps[e]
                    delta = step * (Y[i, k] - score) / (1.0 + norm[i] * damping)
                else:
                    delta = implicit_step(score, Y[i, k], step, norm[i])
                add(w, delta, Phi[i, :columns])
                for c in range(len(w)):
                    w[c] = smaller(larger(w[c], -LARGEST_WEIGHT), LARGEST_WEIGHT)


@inner
def implicit_step(score: float, target: float, step: float, square_norm: float) -> float:
    """Return the solution of  delta = step (target - 1 / (1 + exp(-(score + square_norm delta)))).

    Newton's method within the interval between 0 and the explicit step, which has the solution.
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
