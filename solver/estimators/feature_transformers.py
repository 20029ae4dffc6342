"""NystromFeatures and FourierFeatures: approximate kernel features for any linear model."""

from dataclasses import field
from typing import Any, Self

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import (
    FeatureKind,
    FeatureMap,
    dimension_of,
    make_map,
    takes_sparse,
    transform_all,
)
from wolfstream.solver.estimators.base import (
    AnyKernel,
    KernelParameters,
    as_kind,
    generator,
    parameters,
)
from wolfstream.solver.estimators.checks import check_integer, check_norms
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import n_rows, take_rows


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelParameters):
    """phi(x)'phi(z) ~ k(x, z): dense features of rows that are dense or CSR.

    Attributes: gamma_; dimension_: D, the number of features.
    """

    _kind: FeatureKind
    _map: FeatureMap
    _kernel: Kernel

    dimension: int
    random_state: Any

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_map")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("dimension", self.dimension)

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Make the map from (n, d) rows. Raises ValueError for wrong parameters or rows."""
        self._check_parameters()
        self._forget()
        rows = self._matrix(X, reset=True)
        self._kernel = self._kernel_for(rows)
        self.gamma_ = self._kernel.gamma
        random = generator(self.random_state)
        some = random.permutation(n_rows(rows))[: int(self.dimension)]
        seed = int(random.integers(2**31))
        self._map = make_map(
            self._kind, self._kernel, take_rows(rows, some), int(self.dimension), seed
        )
        self.dimension_ = self._n_features_out = dimension_of(self._map)
        return self

    def transform(self, X: Any) -> Float64Array:
        """Return phi of (n, d) rows, (n, dimension_)."""
        check_is_fitted(self)
        rows = as_kind(takes_sparse(self._map), self._matrix(X, reset=False))
        check_norms(self._kernel, rows)
        return transform_all(self._map, rows)


@parameters
class NystromFeatures(AnyKernel, KernelFeatures):
    """Nystrom features from randomly drawn landmark rows (P5 eq. 7).

    kernel, gamma, degree, coef0: see `estimators.base.KernelParameters`.
    dimension: the number of landmarks, at most the number of rows; dimension_ may be smaller
        where their Gram matrix is singular or indefinite (`asset.nystrom.nystrom_map`).
    random_state: that of the landmarks.
    """

    _kind = "nystrom"

    dimension: int = field(default=512, kw_only=False)
    random_state: Any = None


@parameters
class FourierFeatures(KernelFeatures):
    """Random Fourier features of the rbf kernel (P5 eq. 8).

    gamma: see `estimators.base.KernelParameters`.
    dimension: the number of features.
    random_state: that of the frequencies.
    """

    _kind = "fourier"
    kernel, degree, coef0 = "rbf", 1, 0.0

    dimension: int = field(default=512, kw_only=False)
    gamma: float | str = "auto"
    random_state: Any = None
