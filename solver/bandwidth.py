"""gamma = "auto": the kernel's width from the stream's first samples, then frozen."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from solver.first_samples import FirstSamples
from solver.rows import Matrix, n_rows, scatter, square_norms

_LARGEST_GAMMA = 1e100

# gamma is estimated anew at 2, 4, 8, ... samples and frozen at this many.
SAMPLES = 128


class Learner(Protocol):
    """What the heads of a model have in common: learn in order, save, restore."""

    def absorb(self, X: Matrix, y: NDArray[Any], /) -> Any:
        """Learn rows with class numbers or targets."""

    def view(self) -> Any:
        """An immutable picture for predictions."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that a restart needs."""

    def restore(self, state: Mapping[str, NDArray[Any]], /) -> None:
        """Take over a state."""


L = TypeVar("L", bound=Learner)


def gamma_from_rows(X: Matrix) -> float:
    """1 / (mean squared distance between (n, d) rows), P2's rule; 1 where they are all equal.

    The mean over all ordered pairs of different rows is 2 n / (n - 1) times the mean squared
    distance from the centre, taken with every feature at unit scale so that nothing overflows.
    """
    total, scale = scatter(X)
    if scale == 0.0 or n_rows(X) < 2:
        return 1.0
    mean_square = 2.0 * total / (n_rows(X) - 1)
    return min(1.0 / mean_square / scale / scale, _LARGEST_GAMMA)


class AutoGamma(Generic[L]):
    """A learner whose gamma is estimated from its first samples.

    The learner works from the first sample on: at 2, 4, 8, ..., 128 samples gamma is estimated
    from all of them and they are learned again in their order; at 128 it is frozen and the
    samples are forgotten. As these points are counts of samples, the cutting of the stream
    into calls does not matter.

    build: makes a fresh learner for a gamma.
    largest_product: bound on gamma ||x||^2 over the first samples. A polynomial kernel needs
        one: with features far from zero and close to each other it would overflow.
    """

    def __init__(self, build: Callable[[float], L], largest_product: float = math.inf) -> None:
        self._build = build
        self._largest_product = largest_product
        self.gamma = 1.0
        self.learner = build(1.0)
        self._first = FirstSamples(SAMPLES, settles_by_one=False)

    @property
    def frozen(self) -> bool:
        """Whether gamma is final."""
        return self._first.settled

    def absorb(self, X: Matrix, y: NDArray[Any]) -> list[tuple[slice, Any]]:
        """Learn rows with class numbers or targets, (n,); the learner's answers part by part.

        The parts are consecutive slices of the rows.
        """
        answers = []
        for part, rows, of_rows in self._first.parts(X, y):
            answers.append((part, self.learner.absorb(rows, of_rows)))
            if anew := self._first.keep(rows, of_rows):
                self._begin_anew(*anew)
        return answers

    def _begin_anew(self, X: Matrix, y: NDArray[Any]) -> None:
        largest = float(square_norms(X).max())
        ceiling = self._largest_product / largest if largest > 0.0 else math.inf
        self.gamma = min(gamma_from_rows(X), ceiling)
        self.learner = self._build(self.gamma)
        self.learner.absorb(X, y)

    def state(self) -> dict[str, NDArray[Any]]:
        """The learner's state with gamma and, during the warm-up, the samples so far."""
        own = {"auto_gamma": np.array([self.gamma]), **self._first.state("auto_")}
        return self.learner.state() | own

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state."""
        self.gamma = float(state["auto_gamma"][0])
        self._first.restore("auto_", state)
        self.learner = self._build(self.gamma)
        self.learner.restore(state)
