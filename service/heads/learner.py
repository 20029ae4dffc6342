"""A solver that learns online with a spec's kernel, and bounds on the rows that it takes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.kernel import (
    check_norms,
    kernel_with,
    largest_product,
    square_norm_limit,
)
from wolfstream.service.spec.kernel import has_auto_gamma
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.kernels.bandwidth import Learner
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.prepare.named_rows import NamedRows, Rows
from wolfstream.solver.stream.kernel_learner import Horizon, KernelLearner
from wolfstream.solver.stream.merged_learner import merge_learners

L = TypeVar("L", bound=Learner)


class HeadLearner(KernelLearner[L]):
    """A learner of the spec's kernel. build: makes a fresh one for a kernel.

    horizon: as of `KernelLearner`.
    """

    def __init__(
        self, spec: ModelSpec, build: Callable[[Kernel], L], horizon: Horizon = None
    ) -> None:
        self._spec_kernel = spec.kernel
        self._prepared = spec.prepare is not None
        # The gamma that the limit is for, and the limit.
        self._limit: tuple[float | None, float] = None, square_norm_limit(spec.kernel)
        super().__init__(
            kernel_with(spec.kernel, 1.0),
            build,
            auto=has_auto_gamma(spec.kernel),
            largest_product=largest_product(spec.kernel.type),
            horizon=horizon,
        )

    @property
    def found(self) -> dict[str, float | None]:
        """The widths that were found, for a description; empty if the spec sets them."""
        gamma = self.gamma
        found: dict[str, float | None] = {} if gamma is None else {"gamma": gamma}
        return {**found, "horizon": self.horizon} if self._horizon == "auto" else found

    def check(self, rows: Rows) -> None:
        """Refuse rows whose kernel values would overflow. Raises InvalidSamples.

        Preparation bounds the numbers of arrays, which are not prepared yet.
        """
        if not self._prepared or isinstance(rows, NamedRows):
            check_norms(rows, self.square_norm_limit())

    def square_norm_limit(self) -> float:
        """Return the largest ||x||^2 of a row that the learner can take."""
        gamma = self.gamma
        if self._spec_kernel.type == "polynomial" and not self.frozen:
            gamma = None
        if gamma != self._limit[0]:
            self._limit = gamma, square_norm_limit(self._spec_kernel, gamma)
        return self._limit[1]


class MergingLearner(HeadLearner[L], ABC):
    """A learner of classes, several of which can be merged."""

    @property
    @abstractmethod
    def has_learned(self) -> bool:
        """Whether it has learned any sample."""

    def merge(self, each: Sequence[Self], places: Sequence[NDArray[np.int64]]) -> None:
        """See `ClassLearner`. Those that have learned nothing have no part in it."""
        there = [(one, of) for one, of in zip(each, places, strict=True) if one.has_learned]
        if there:
            merge_learners(self, [one for one, _ in there], [of for _, of in there])
