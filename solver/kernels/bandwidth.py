"""gamma = "auto": the kernel's width is estimated from the first samples, then frozen (P2)."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.rows.first_samples import FirstSamples, SamplePart
from wolfstream.solver.rows.matrix import Matrix, n_rows, square_norms
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.rows.scatter import scatter

_LARGEST_GAMMA = 1e100

# gamma is estimated at 2, 4, 8, ... samples and frozen at this number.
SAMPLES = 128


class Learner(Protocol):
    """The operations that all learners have: learn in order, predict, save and restore."""

    def absorb(self, X: Matrix, y: NDArray[Any], /, *, weight: Weights = None) -> Any:
        """Learn rows with class numbers or targets, and sample weights."""

    def view(self) -> Any:
        """Return an immutable view for predictions."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which `restore` continues bit for bit."""

    def restore(self, state: Mapping[str, NDArray[Any]], /) -> None:
        """Continue from a state."""


L = TypeVar("L", bound=Learner)


def gamma_from_rows(X: Matrix, largest_product: float = math.inf) -> float:
    """Return gamma = 1 / (mean squared distance between rows) (P2), 1 if all rows are equal.

    The mean over all ordered pairs of different rows is 2 n / (n - 1) times the mean squared
    distance from the centre, which `rows.scatter` computes without overflow.

    X: (n, d) rows.
    largest_product: a bound on gamma ||x||^2 over the rows. A polynomial kernel needs one: with
        features far from zero and close to each other it would overflow.
    """
    gamma = _inverse_mean_square_distance(X)
    if largest_product < math.inf and (largest := float(square_norms(X).max())) > 0.0:
        gamma = min(gamma, largest_product / largest)
    return gamma


def _inverse_mean_square_distance(X: Matrix) -> float:
    total, scale = scatter(X)
    if scale == 0.0 or n_rows(X) < 2:
        return 1.0
    mean_square = 2.0 * total / (n_rows(X) - 1)
    return min(1.0 / mean_square / scale / scale, _LARGEST_GAMMA)


class AutoGamma(Generic[L]):
    """A learner whose gamma is estimated from its first samples.

    The learner predicts from the first sample on: at 2, 4, 8, ..., 128 samples gamma is estimated
    from all of them and they are learned again in order; at 128 gamma is frozen and the samples
    are dropped. These points are counts of samples, so the division of the stream into calls does
    not matter.

    build: returns a new learner for a gamma.
    largest_product: of `gamma_from_rows`, over the first samples.
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

    def absorb(self, X: Matrix, y: NDArray[Any], weight: Weights = None) -> list[tuple[slice, Any]]:
        """Learn samples in order; returns consecutive slices of them with the learner's answers.

        X: (n, d) rows.
        y: (n,) class numbers or targets.
        weight: (n,) sample weights, on which gamma does not depend; None if all are 1.
        """
        answers = []
        for index, part in self._first.parts(X, y, weight):
            answers.append((index, self.learner.absorb(part.X, part.y, weight=part.weight)))
            if first := self._first.keep(part):
                self._start_again(first)
        return answers

    def go_on_from(self, learner: L, gamma: float) -> None:
        """Take over a learner that was made elsewhere with a gamma, which is final."""
        self.learner, self.gamma = learner, gamma
        self._first.settle()

    def _start_again(self, first: SamplePart) -> None:
        self.gamma = gamma_from_rows(first.X, self._largest_product)
        self.learner = self._build(self.gamma)
        self.learner.absorb(first.X, first.y, weight=first.weight)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the learner's state, gamma and, until gamma is frozen, the samples so far."""
        arrays = {"auto_gamma": np.array([self.gamma]), **self._first.state("auto_")}
        return self.learner.state() | arrays

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state."""
        self.gamma = float(state["auto_gamma"][0])
        self._first.restore("auto_", state)
        self.learner = self._build(self.gamma)
        self.learner.restore(state)
