"""A solver that learns online, for the kernel of a spec; the stream settles gamma where it must."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from service.heads.kernel import check_norms, kernel_with, largest_product, square_norm_limit
from service.samples.named_rows import NamedRows, Rows
from service.spec.kernel import has_auto_gamma
from service.spec.model import ModelSpec
from solver.kernels.bandwidth import AutoGamma, Learner
from solver.kernels.functions import Kernel
from solver.rows.matrix import Matrix, SparseRows, largest_feature

L = TypeVar("L", bound=Learner)


class HeadLearner(Generic[L]):
    """A learner of the spec's kernel, and the bounds on the rows that it takes.

    build: makes a fresh learner for a kernel.
    features: of sparse rows, one more than the largest feature number that was learned.
    """

    def __init__(self, spec: ModelSpec, build: Callable[[Kernel], L]) -> None:
        self._kernel = spec.kernel
        self._prepared = spec.prepare is not None
        self.features = 0
        self._auto: AutoGamma[L] | None = None
        self._fixed: L | None = None
        if has_auto_gamma(spec.kernel):
            self._auto = AutoGamma(
                lambda gamma: build(kernel_with(spec.kernel, gamma)),
                largest_product(spec.kernel.type),
            )
        else:
            self._fixed = build(kernel_with(spec.kernel, 1.0))

    @property
    def current(self) -> L:
        """The learner; another one whenever gamma is estimated anew."""
        learner = self._auto.learner if self._auto else self._fixed
        assert learner is not None
        return learner

    @property
    def gamma(self) -> dict[str, float]:
        """The estimated gamma, for a description; empty where the spec has a number."""
        return {"gamma": self._auto.gamma} if self._auto else {}

    def absorb(self, X: Matrix, y: NDArray[Any]) -> list[Any]:
        """Learn rows with class numbers or targets; returns the learner's answers part by part."""
        if self._auto:
            answers = [answer for _, answer in self._auto.absorb(X, y)]
        else:
            answers = [self.current.absorb(X, y)]
        if isinstance(X, SparseRows):
            self.features = max(self.features, largest_feature(X) + 1)
        return answers

    def check(self, rows: Rows) -> None:
        """Refuse rows that no kernel value could hold. Raises InvalidSamples.

        Preparation bounds the numbers of arrays, which are not prepared yet.
        """
        if not self._prepared or isinstance(rows, NamedRows):
            check_norms(rows, self.square_norm_limit())

    def square_norm_limit(self) -> float:
        """The largest ||x||^2 of a row that the learner can take."""
        polynomial = self._kernel.type == "polynomial"
        if self._auto and (not polynomial or self._auto.frozen):
            return square_norm_limit(self._kernel, self._auto.gamma)
        return square_norm_limit(self._kernel)

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
