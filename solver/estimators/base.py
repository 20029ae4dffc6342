"""The base classes of the estimators, and the checks of their parameters and data.

Users pass arrays and scipy matrices as scikit-learn takes them; inside, rows are a `Matrix`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.estimators.checks import (
    check_choice,
    check_integer,
    check_norms,
    check_not_tiny,
    check_positive,
    is_finite,
)
from wolfstream.solver.kernels.bandwidth import gamma_from_rows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import Matrix, SparseRows, sparse_from_csr, to_csr
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.working_set.view import WorkingSetView

C = TypeVar("C")

KERNELS = ("rbf", "polynomial", "linear")


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def parameters(estimator: type[C]) -> type[C]:
    """Make a class's fields, with those of its bases, the parameters of its constructor.

    scikit-learn reads an estimator's parameters from the signature of `__init__`, which has to
    set them and do nothing else: so it need not be written. They are given by name, but for those
    with `kw_only=False`.
    """
    return dataclass(eq=False, repr=False, kw_only=True)(estimator)


class KernelParameters(BaseEstimator):
    """The kernel parameters of an estimator, and its checks of rows.

    A subclass has these parameters:

    kernel: "rbf", exp(-gamma ||x - z||^2); "polynomial", (gamma x'z + coef0)^degree; or
        "linear", x'z.
    gamma: a number, or "auto": 1 / (mean squared distance between the training rows) (P2).

    Rows to predict may be dense or sparse, whichever the training rows were.
    """

    # Attributes that are computed when they are read after `partial_fit`, with the method that sets
    # each. A stream of single samples would compute them for nobody.
    _set_by: ClassVar[Mapping[str, str]] = MappingProxyType({})

    kernel: str
    gamma: float | str
    degree: int
    coef0: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        """Raise ValueError for wrong parameters of the kernel."""
        check_choice("kernel", self.kernel, KERNELS)
        if self.gamma != "auto":
            check_positive("gamma", self.gamma, "'auto' or ")
        check_integer("degree", self.degree)
        if not is_finite(self.coef0):
            raise ValueError(f"coef0 is {self.coef0!r}; it must be a finite number")

    def _forget(self) -> None:
        """Drop the results of an earlier fit, so that a failing one cannot mix with them."""
        fitted = [name for name in vars(self) if name.endswith("_")]
        for name in (*fitted, "_view", "_learner", "_calibration", "_is_behind"):
            self.__dict__.pop(name, None)

    def _fall_behind(self) -> None:
        """Drop the attributes of `_set_by`, which are computed anew when one is read."""
        for name in self._set_by:
            self.__dict__.pop(name, None)
        self._is_behind = True

    def __getattr__(self, name: str) -> Any:
        setter = type(self)._set_by.get(name)
        if setter is None or "_is_behind" not in vars(self):
            return object.__getattribute__(self, name)  # which raises what it raised before
        getattr(self, setter)()
        return vars(self)[name]

    def __sklearn_is_fitted__(self) -> bool:
        return "_is_behind" in vars(self) or hasattr(self, "_view")

    def _matrix(self, X: Any, *, reset: bool) -> Matrix:
        """Return checked rows; raises ValueError as scikit-learn's estimators do."""
        return as_matrix(
            validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=reset)
        )

    def _rows_and_targets(
        self, X: Any, y: Any, *, reset: bool = True, at_least: int = 1
    ) -> tuple[Matrix, Float64Array]:
        """Return checked rows and targets, (n,); raises ValueError as scikit-learn does.

        at_least: the least number of rows.
        """
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            y_numeric=True,
            ensure_min_samples=at_least,
            reset=reset,
        )
        return as_matrix(X), np.asarray(y, np.float64)

    def _kernel_for(self, X: Matrix) -> Kernel:
        """Return the kernel, with gamma as a number.

        Raises ValueError where kernel values would overflow, or squares of all rows underflow.
        """
        if self.gamma == "auto" or self.kernel == "linear":
            check_not_tiny(X)
        gamma = gamma_from_rows(X) if self.gamma == "auto" else float(self.gamma)
        kernel = Kernel(self.kernel, gamma, int(self.degree), float(self.coef0))  # type: ignore[arg-type]
        check_norms(kernel, X)
        return kernel


@parameters
class AnyKernel:
    """The parameters of an estimator that may have any kernel; see `KernelParameters`."""

    kernel: str = "rbf"
    gamma: float | str = "auto"
    degree: int = 3
    coef0: float = 1.0


class KernelEstimator(KernelParameters):
    """The parameters and checks of estimators with support vectors.

    In addition to the parameters of `KernelParameters`:

    C: a number; the larger it is, the more a violation costs.

    A polynomial kernel with coef0 < 0 need not be positive semidefinite. Where this shows in the
    rows, fitting warns that the gap is no bound.
    """

    _view: WorkingSetView
    _C_may_be_infinite: ClassVar[bool] = False

    C: float

    def _check_parameters(self) -> None:
        """Raise ValueError for wrong parameters of the kernel or a wrong C."""
        super()._check_parameters()
        check_positive("C", self.C, infinite=self._C_may_be_infinite)

    def _rows_to_predict(self, X: Any) -> Matrix:
        """Return checked rows, converted to the kind, dense or sparse, of the training rows."""
        check_is_fitted(self)
        rows = same_kind(self._view.rows.exact, self._matrix(X, reset=False))
        check_norms(self._view.kernel, rows)
        return rows


def class_codes(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return (classes, the code of each label); raises ValueError for fewer than two classes."""
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"there is only one class in y, {classes[0]!r}: a classifier needs samples of two"
        )
    return classes, codes.astype(np.int64)


def class_weights(
    y: NDArray[Any], class_weight: Any, sample_weight: Weights = None
) -> Float64Array:
    """Return the weight > 0 of each class in y, ascending, from scikit-learn's `class_weight`.

    sample_weight: (n,) of the samples, by which "balanced" counts them.
    """
    classes, codes = np.unique(y, return_inverse=True)
    if sample_weight is not None and isinstance(class_weight, str) and class_weight == "balanced":
        of_classes = np.bincount(codes, sample_weight)
        return np.asarray(of_classes.sum() / (len(classes) * of_classes))
    weight = compute_class_weight(class_weight, classes=classes, y=y)
    if not np.all((weight > 0) & np.isfinite(weight)):
        raise ValueError("class weights must be finite numbers above zero")
    return np.asarray(weight, np.float64)


def as_matrix(X: Any) -> Matrix:
    """Return a scipy CSR matrix as SparseRows, and anything dense as a float64 array."""
    if hasattr(X, "indptr"):
        return sparse_from_csr(X.data, X.indices, X.indptr, X.shape[1])
    return np.asarray(X, np.float64)


def as_given(X: Matrix) -> Any:
    """Return rows in scikit-learn's form, the inverse of `as_matrix`."""
    if isinstance(X, SparseRows):
        from scipy.sparse import csr_matrix

        return csr_matrix(to_csr(X), shape=(len(X.start), X.width))
    return X


def same_kind(first: Matrix, other: Matrix) -> Matrix:
    """Return the other rows as dense or sparse as the first."""
    return as_kind(isinstance(first, SparseRows), other)


def as_kind(sparse: bool, other: Matrix) -> Matrix:
    """Return the rows as sparse or as dense ones."""
    if sparse == isinstance(other, SparseRows):
        return other
    if isinstance(other, SparseRows):
        return np.asarray(as_given(other).toarray())
    from scipy.sparse import csr_matrix

    return as_matrix(csr_matrix(other))


def generator(random_state: Any) -> np.random.Generator:
    """Return a numpy generator for scikit-learn's `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_random_state(random_state).randint(2**31))
