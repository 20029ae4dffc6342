"""A solver that learns online for one kernel, whose gamma the stream settles if it is "auto"."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from solver.kernels.bandwidth import AutoGamma, Learner
from solver.kernels.functions import Kernel
from solver.rows.matrix import Matrix, SparseRows, largest_feature
from solver.stream.votes import Answer

L = TypeVar("L", bound=Learner)


class KernelLearner(Generic[L]):
    """A learner of a kernel. It listens to nobody.

    kernel: with the gamma to begin with. auto: whether the first samples settle gamma. build:
    makes a fresh learner for a kernel. largest_product: of `kernels.bandwidth.gamma_from_rows`.
    features: of sparse rows, one more than the largest feature number that was learned.
    """

    def __init__(
        self,
        kernel: Kernel,
        build: Callable[[Kernel], L],
        *,
        auto: bool,
        largest_product: float = math.inf,
    ) -> None:
        self.features = 0
        self._auto: AutoGamma[L] | None = None
        self._fixed: L | None = None
        if auto:
            self._auto = AutoGamma(partial(_build_with, build, kernel), largest_product)
        else:
            self._fixed = build(kernel)

    @property
    def current(self) -> L:
        """The learner; another one whenever gamma is estimated anew."""
        learner = self._auto.learner if self._auto else self._fixed
        assert learner is not None
        return learner

    @property
    def gamma(self) -> float | None:
        """The estimate so far; None where gamma is given."""
        return self._auto.gamma if self._auto else None

    @property
    def frozen(self) -> bool:
        """Whether gamma is final."""
        return self._auto is None or self._auto.frozen

    def meet(self, label: object) -> None:
        """A class needs no preparation."""

    def absorb(self, X: Matrix, y: NDArray[Any], _: object = None) -> list[Answer]:
        """Learn rows with class numbers or targets; returns the learner's answers part by part."""
        if self._auto:
            answers = [answer for _, answer in self._auto.absorb(X, y)]
        else:
            answers = [self.current.absorb(X, y)]
        if isinstance(X, SparseRows):
            self.features = max(self.features, largest_feature(X) + 1)
        return answers

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain data and arrays from which `restore` goes on bit for bit."""
        arrays = self._auto.state() if self._auto else self.current.state()
        return {"features": self.features}, arrays

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over a state."""
        self.features = plain["features"]
        if self._auto:
            self._auto.restore(arrays)
        else:
            self.current.restore(arrays)


def _build_with(build: Callable[[Kernel], L], kernel: Kernel, gamma: float) -> L:
    return build(kernel._replace(gamma=gamma))
