"""What the estimators share: scikit-learn's conventions on the outside, `Matrix` on the inside."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from solver.bandwidth import gamma_from_rows
from solver.kernels import Float64Array, Kernel, largest_square_norm
from solver.rows import Matrix, SparseRows, sparse_from_csr, square_norms, to_csr

KERNELS = ("rbf", "polynomial", "linear")


class KernelEstimator(BaseEstimator):
    """Parameters and checks that every estimator here has.

    A subclass has the parameters kernel, gamma, degree, coef0 and C. `gamma` is a number or
    "auto": 1 / (mean squared distance between the training rows) (P2's rule).
    """

    kernel: str
    gamma: float | str
    degree: int
    coef0: float
    C: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        """Raise ValueError for a kernel or a C that is not one."""
        if self.kernel not in KERNELS:
            raise ValueError(f"kernel is {self.kernel!r}; it must be one of {', '.join(KERNELS)}")
        if self.gamma != "auto":
            _check_positive("gamma", self.gamma)
        if not (isinstance(self.degree, int | np.integer) and self.degree >= 1):
            raise ValueError(f"degree is {self.degree!r}; it must be a positive integer")
        _check_positive("C", self.C)

    def _matrix(self, X: Any, *, reset: bool) -> Matrix:
        """Checked rows; raises ValueError as scikit-learn's estimators do."""
        return as_matrix(
            validate_data(self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=reset)
        )

    def _kernel_for(self, X: Matrix) -> Kernel:
        """The kernel with a number as gamma. Raises ValueError where its values would overflow."""
        gamma = gamma_from_rows(X) if self.gamma == "auto" else float(self.gamma)
        kernel = Kernel(self.kernel, gamma, int(self.degree), float(self.coef0))  # type: ignore[arg-type]
        check_norms(kernel, X)
        return kernel

    def _ridges(self, y: NDArray[Any], class_weight: Any) -> Float64Array:
        """1 / (2 C w) of each class, w from scikit-learn's `class_weight`."""
        weight = compute_class_weight(class_weight, classes=np.unique(y), y=y)
        if not np.all(weight > 0):
            raise ValueError("class weights must be greater than zero")
        return np.asarray(0.5 / (self.C * weight))


def class_codes(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """(classes, code of each label); raises ValueError for fewer than two classes."""
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"there is only one class in y, {classes[0]!r}: a classifier needs samples of two"
        )
    return classes, codes.astype(np.int64)


def as_matrix(X: Any) -> Matrix:
    """A scipy CSR matrix as SparseRows, anything dense as it is."""
    if hasattr(X, "indptr"):
        return sparse_from_csr(X.data, X.indices, X.indptr, X.shape[1])
    return np.asarray(X, np.float64)


def as_given(X: Matrix) -> Any:
    """The inverse of `as_matrix`."""
    if isinstance(X, SparseRows):
        from scipy.sparse import csr_matrix

        return csr_matrix(to_csr(X), shape=(len(X.start), X.width))
    return X


def check_norms(kernel: Kernel, X: Matrix) -> None:
    """Raise ValueError for rows whose kernel values would overflow."""
    with np.errstate(over="ignore"):
        square = square_norms(X)
    wrong = np.flatnonzero(~(square <= largest_square_norm(kernel)))
    if len(wrong):
        raise ValueError(
            f"row {wrong[0]} has norm {square[wrong[0]] ** 0.5:.3g}, too large for this kernel: "
            "scale the features, or choose a smaller gamma or degree"
        )


def generator(random_state: Any) -> np.random.Generator:
    """A numpy generator from scikit-learn's `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def _check_positive(name: str, value: Any) -> None:
    if not (isinstance(value, int | float | np.number) and value > 0):
        raise ValueError(f"{name} is {value!r}; it must be a number greater than zero")
