"""The enclosing ball as a learner of a stream's model: how new each row is before it is learned."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.kernel_learner import KernelLearner
from wolfstream.solver.working_set.ball import OnlineBall
from wolfstream.solver.working_set.view import WorkingSetView

# With P2's gamma a class that lies among others is inside of their ball; on pendigits its AUC is
# 0.61, with 16 times that 0.96 (`benchmarks/README.md`).
_SHARPER = 16.0


class NoveltyAnswers(NamedTuple):
    """The novelty of n rows before they were learned."""

    novelty: Float64Array  # (n,), NaN for the first row of all


class BallLearner:
    """Adapts `OnlineBall` to the interface of other learners; labels and targets are ignored."""

    def __init__(self, ball: OnlineBall) -> None:
        self.ball = ball

    def absorb(self, X: Matrix, _: NDArray[Any], /, *, weight: Weights = None) -> NoveltyAnswers:
        """Learn rows in order; return the novelty of each before that."""
        return NoveltyAnswers(self.ball.absorb(X, weight))

    def view(self) -> WorkingSetView:
        """Return an immutable view, for `novelty_of`."""
        return self.ball.view()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return plain arrays from which `restore` continues bit for bit."""
        return self.ball.state()

    def restore(self, state: Mapping[str, NDArray[Any]], /) -> None:
        """Restore what `state` returned."""
        self.ball.restore(state)


class NoveltyLearner(KernelLearner[BallLearner]):
    """Learns the enclosing ball of a stream's rows.

    ball: returns a ball for a kernel.
    gamma: of the kernel; None for 16 times P2's gamma of the first 128 rows.
    """

    def __init__(self, ball: Callable[[Kernel], OnlineBall], gamma: float | None) -> None:
        def build(kernel: Kernel) -> BallLearner:
            wide = kernel.gamma if gamma is not None else _SHARPER * kernel.gamma
            return BallLearner(ball(kernel._replace(gamma=wide)))

        kernel = Kernel("rbf", 1.0 if gamma is None else gamma)
        super().__init__(kernel, build, auto=gamma is None)

    @property
    def ball(self) -> OnlineBall:
        """The ball; it is replaced while gamma is chosen."""
        return self.current.ball

    def judge(self, X: Matrix, y: NDArray[Any], weight: Weights = None) -> Float64Array:
        """Learn rows in order; return the novelty (n,) of each before that.

        X: n rows.
        y: (n,) ignored.
        weight: (n,) weights of the rows.
        """
        parts: list[Any] = self.absorb(X, y, weight=weight)
        return np.concatenate([part.novelty for part in parts])
