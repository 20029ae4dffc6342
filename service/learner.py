"""The learner of a head: built for the spec's kernel, gamma settled by the stream if need be."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.errors import MOST_ERRORS, InvalidSamples, SampleError
from service.names import Rows, square_norms
from service.spec import ModelSpec
from solver.asset import Asset
from solver.bandwidth import AutoGamma, Learner
from solver.features import dimension_of
from solver.kernels import Kernel, largest_square_norm
from solver.nystrom import NystromMap
from solver.rows import Matrix, SparseRows, largest_feature, n_rows

# Bound on gamma ||x||^2 where gamma is estimated: to the eighth power still below 1e100.
LARGEST_POLYNOMIAL_PRODUCT = 1e6

L = TypeVar("L", bound=Learner)


class HeadLearner(Generic[L]):
    """A learner of the spec's kernel, and what the rows that it takes are bounded by.

    build: makes a fresh learner for a kernel.
    features: of sparse rows, one more than the largest feature number that was met.
    """

    def __init__(self, spec: ModelSpec, build: Callable[[Kernel], L]) -> None:
        self._spec = spec
        self.features = 0
        self._auto: AutoGamma[L] | None = None
        self._fixed: L | None = None
        if spec.auto_gamma:
            polynomial = spec.kernel.type == "polynomial"
            limit = LARGEST_POLYNOMIAL_PRODUCT if polynomial else np.inf
            self._auto = AutoGamma(lambda gamma: build(spec.kernel_with(gamma)), limit)
        else:
            self._fixed = build(spec.kernel_with(1.0))

    @property
    def current(self) -> L:
        """The learner; another one whenever gamma is estimated anew."""
        learner = self._auto.learner if self._auto else self._fixed
        assert learner is not None
        return learner

    @property
    def gamma(self) -> dict[str, float]:
        """The estimated gamma, for a description; nothing where the spec has said it."""
        return {"gamma": self._auto.gamma} if self._auto else {}

    def absorb(self, X: Matrix, y: NDArray[Any]) -> list[Any]:
        """Learn rows with class numbers or targets; the learner's answers part by part."""
        if self._auto:
            answers = [answer for _, answer in self._auto.absorb(X, y)]
        else:
            answers = [self.current.absorb(X, y)]
        if isinstance(X, SparseRows):
            self.features = max(self.features, largest_feature(X) + 1)
        return answers

    def largest_square_norm(self) -> float:
        """The largest ||x||^2 of a row that the learner can take."""
        if self._spec.kernel.type == "polynomial" and self._auto and not self._auto.frozen:
            return 1e12
        gamma = self._auto.gamma if self._auto else 1.0
        return min(largest_square_norm(self._spec.kernel_with(gamma)), 1e100)

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


def check_norms(rows: Rows | SparseRows, limit: float) -> None:
    """Raise InvalidSamples for rows whose ||x||^2 no kernel value of the model could hold."""
    # The squares of all rows are summed at once, and are no less than those of each.
    if isinstance(rows, np.ndarray) and np.vdot(rows, rows) <= limit:
        return
    wrong = np.flatnonzero(~(square_norms(rows) <= limit))
    if len(wrong):
        detail = f"its norm exceeds {limit**0.5:.3g}, the most this kernel can hold"
        errors: list[SampleError] = [
            {"row": int(i), "pointer": f"/x/{i}", "detail": detail} for i in wrong[:MOST_ERRORS]
        ]
        raise InvalidSamples("some rows are too large for the kernel", errors)


def asset_of(spec: ModelSpec, kernel: Kernel) -> Asset:
    """ASSET as the spec has it."""
    own = spec.asset
    assert own is not None
    return Asset(
        kernel,
        task=spec.task,
        algorithm=own.algorithm,
        features=own.features,
        dimension=own.dimension or 1,  # identity looks at none
        epsilon=own.epsilon or 0.0,  # nor does classification here
        lam=own.lam,
        average=own.average,
        average_from=own.average_from,
        horizon=own.horizon,
        seed=spec.seed,
    )


def asset_stats(spec: ModelSpec, learner: Asset) -> dict[str, Any]:
    """What a description says of ASSET; dimension is that of the features in use."""
    own, features = spec.asset, learner.features
    assert own is not None
    stats: dict[str, Any] = {
        "algorithm": own.algorithm,
        "features": own.features,
        "dimension": None if features is None else dimension_of(features),
        "steps": learner.steps,
        "bytes": learner.nbytes,
    }
    if own.features == "nystrom":
        used = n_rows(features.landmarks.exact) if isinstance(features, NystromMap) else 0
        stats["landmarks"] = {"used": used, "frozen": learner.frozen}
    return stats
