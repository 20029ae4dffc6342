"""An online learner with a spec's kernel, and the bounds on its rows."""

from collections.abc import Callable
from typing import TypeVar

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

L = TypeVar("L", bound=Learner)


class HeadLearner(KernelLearner[L]):
    """A learner with the spec's kernel.

    Args:
        spec: the model's spec.
        build: returns a new solver with a kernel.
        horizon: see `KernelLearner`.
    """

    def __init__(
        self, spec: ModelSpec, build: Callable[[Kernel], L], horizon: Horizon = None
    ) -> None:
        self._spec_kernel = spec.kernel
        self._prepared = spec.prepare is not None
        # The last limit on ||x||^2, and the gamma for which it was computed.
        self._limit: tuple[float | None, float] = None, square_norm_limit(spec.kernel)
        super().__init__(
            kernel_with(spec.kernel, 1.0),
            build,
            auto=has_auto_gamma(spec.kernel),
            largest_product=largest_product(spec.kernel.type),
            horizon=horizon,
        )

    @property
    def estimated_widths(self) -> dict[str, float | None]:
        """The estimated widths, for the description; {} if the spec sets them."""
        gamma = self.gamma
        widths: dict[str, float | None] = {} if gamma is None else {"gamma": gamma}
        return {**widths, "horizon": self.horizon} if self._horizon == "auto" else widths

    def check(self, rows: Rows) -> None:
        """Refuse rows whose kernel values would overflow. Raises InvalidSamples.

        Rows of a model that prepares them need no check: preparation bounds them.
        """
        if not self._prepared or isinstance(rows, NamedRows):
            check_norms(rows, self.square_norm_limit())

    def square_norm_limit(self) -> float:
        """Return the largest ||x||^2 of a row that the learner accepts."""
        gamma = self.gamma
        if self._spec_kernel.type == "polynomial" and not self.frozen:
            gamma = None
        if gamma != self._limit[0]:
            self._limit = gamma, square_norm_limit(self._spec_kernel, gamma)
        return self._limit[1]
