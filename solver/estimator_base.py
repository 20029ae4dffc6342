"""What the estimators share: scikit-learn's conventions on the outside, `Matrix` on the inside."""

import math
import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from solver.bandwidth import gamma_from_rows
from solver.kernels import (
    Float64Array,
    Kernel,
    kernel_block,
    kernel_diagonal,
    largest_square_norm,
    prepare_rows,
)
from solver.rows import Matrix, SparseRows, origin_of, sparse_from_csr, square_norms, to_csr
from solver.view import WorkingSetView

KERNELS = ("rbf", "polynomial", "linear")
# So many vertices are enough to see that a matrix is indefinite, and few enough to cost nothing.
PROBED = 200
# Of the kernel values in predictions. A float32 value depends in its last digits on the shape of
# the product it came from: a row's prediction would depend on the rows it comes with.
PREDICTION_DTYPE = np.dtype(np.float64)
# Share of a matrix's largest entry that an eigenvalue may be below zero by rounding.
_NULL = 1e-10


class KernelParameters(BaseEstimator):
    """The kernel of an estimator, and rows as scikit-learn gives them.

    A subclass has these parameters:

    kernel: "rbf", exp(-gamma ||x - z||^2); "polynomial", (gamma x'z + coef0)^degree; or
        "linear", x'z.
    gamma: a number, or "auto": 1 / (mean squared distance between the training rows) (P2).

    Rows to predict may be dense or sparse, whichever the training rows were.
    """

    kernel: str
    gamma: float | str
    degree: int
    coef0: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        """Raise ValueError for a kernel that is none."""
        check_choice("kernel", self.kernel, KERNELS)
        if self.gamma != "auto":
            check_positive("gamma", self.gamma, "'auto' or ")
        check_integer("degree", self.degree)
        if not is_finite(self.coef0):
            raise ValueError(f"coef0 is {self.coef0!r}; it must be a finite number")

    def _forget(self) -> None:
        """Drop what an earlier fit has set: one that fails must not leave half of two models."""
        fitted = [name for name in vars(self) if name.endswith("_")]
        for name in (*fitted, "_view", "_learner"):
            self.__dict__.pop(name, None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_view")

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


class KernelEstimator(KernelParameters):
    """Parameters and checks of the estimators that keep support vectors.

    Besides those of `KernelParameters`:

    C: a number; the larger, the more a violation costs.

    Polynomials with coef0 < 0 need not be positive semidefinite: where the rows show it,
    fitting warns that the gap is no bound.
    """

    _view: WorkingSetView
    _C_may_be_infinite: ClassVar[bool] = False

    C: float

    def _check_parameters(self) -> None:
        """Raise ValueError for a kernel or a C that is none."""
        super()._check_parameters()
        check_positive("C", self.C, infinite=self._C_may_be_infinite)

    def _rows_to_predict(self, X: Any) -> Matrix:
        """Checked rows of the kind, dense or sparse, that the model was trained on."""
        check_is_fitted(self)
        rows = same_kind(self._view.rows.exact, self._matrix(X, reset=False))
        check_norms(self._view.kernel, rows)
        return rows


def class_codes(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """(classes, code of each label); raises ValueError for fewer than two classes."""
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"there is only one class in y, {classes[0]!r}: a classifier needs samples of two"
        )
    return classes, codes.astype(np.int64)


def class_weights(y: NDArray[Any], class_weight: Any) -> Float64Array:
    """The weight > 0 of each class in y, ascending, from scikit-learn's `class_weight`."""
    weight = compute_class_weight(class_weight, classes=np.unique(y), y=y)
    if not np.all((weight > 0) & np.isfinite(weight)):
        raise ValueError("class weights must be finite numbers above zero")
    return np.asarray(weight, np.float64)


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


def same_kind(first: Matrix, other: Matrix) -> Matrix:
    """The other rows as the first are, dense or sparse."""
    return as_kind(isinstance(first, SparseRows), other)


def as_kind(sparse: bool, other: Matrix) -> Matrix:
    """The rows sparse or dense."""
    if sparse == isinstance(other, SparseRows):
        return other
    if isinstance(other, SparseRows):
        return np.asarray(as_given(other).toarray())
    from scipy.sparse import csr_matrix

    return as_matrix(csr_matrix(other))


def check_norms(kernel: Kernel, X: Matrix) -> None:
    """Raise ValueError for rows whose kernel values would overflow."""
    with np.errstate(over="ignore"):
        square = square_norms(X)
    largest = largest_square_norm(kernel)
    wrong = np.flatnonzero(~(square <= largest))
    if len(wrong):
        other = ", or choose a smaller gamma or degree" if kernel.type == "polynomial" else ""
        raise ValueError(
            f"row {wrong[0]} has a norm above {math.sqrt(largest):.3g}, where the values of the "
            f"{kernel.type} kernel would overflow: scale the features{other}"
        )


def warn_of_rounding(kernel: Kernel, X: Matrix, least: float) -> None:
    """Warn where kernel values are so large that they are rounded by more than `least`.

    The weights sum to one, so q and the gap inherit that error. Values of rbf are at most one.
    """
    if kernel.type == "rbf":
        return
    largest = float(np.abs(kernel_diagonal(kernel, X)).max())
    error = largest * float(np.finfo(kernel.dtype).eps)
    if error > least > 0.0:
        warnings.warn(
            f"kernel values up to {largest:.3g} are rounded by about {error:.3g}, and with them "
            "the objective and the gap: centre and scale the features",
            UserWarning,
            stacklevel=3,
        )


def is_indefinite(kernel: Kernel, X: Matrix, sign: Float64Array, ridge: Float64Array) -> bool:
    """Whether d'Ad < 0 for a d that sums to zero: then q is not convex on the simplex.

    A = s_i s_j (k(x_i, x_j) + 1) + delta_ij ridge_i of (n, d) rows, at most `PROBED`. A linear
    term (`solver.duals`) does not change d'Ad. Only a polynomial with coef0 < 0 can be
    indefinite: the expansions of the other kernels have no negative coefficient.
    """
    if kernel.type != "polynomial" or kernel.coef0 >= 0.0 or not len(sign):
        return False
    rows = prepare_rows(kernel, X, origin_of(X), kernel.dtype)
    A = np.outer(sign, sign) * (kernel_block(kernel, rows, rows) + 1.0) + np.diag(ridge)
    rounding = _NULL * len(A) * float(np.abs(A).max())
    A -= A.mean(axis=0)
    A -= A.mean(axis=1, keepdims=True)
    return bool(np.linalg.eigvalsh(A)[0] < -rounding)


def warn_of_indefinite_matrix() -> None:
    """The gap bounds f* - f because q is convex; say so where it is not."""
    warnings.warn(
        "the kernel matrix is not positive semidefinite: the gap is no bound on how far the "
        "objective is from its optimum",
        UserWarning,
        stacklevel=5,
    )


def evenly(n: int, count: int) -> NDArray[np.int64]:
    """Up to `count` different numbers, evenly spread over 0, ..., n - 1."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(np.int64))


def generator(random_state: Any) -> np.random.Generator:
    """A numpy generator from scikit-learn's `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError, with the list, for what is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(choices)}")


def check_integer(name: str, value: Any, least: int = 1) -> None:
    """Raise ValueError for what is no integer >= least."""
    if not (isinstance(value, int | np.integer) and value >= least):
        raise ValueError(f"{name} is {value!r}; it must be an integer, at least {least}")


def check_positive(name: str, value: Any, other: str = "", *, infinite: bool = False) -> None:
    """Raise ValueError for what is no number > 0, or is an infinite one where it must not be.

    other: what else the parameter might have been, for the message.
    """
    if not (is_finite(value) or (infinite and value == math.inf)) or value <= 0:
        kind = "number" if infinite else "finite number"
        raise ValueError(f"{name} is {value!r}; it must be {other}a {kind} above zero")


def is_finite(value: Any) -> bool:
    """Whether this is a number and neither infinite nor NaN."""
    return isinstance(value, int | float | np.number) and math.isfinite(value)
