"""FrankWolfeClassifier: a kernel SVM solved to a certified duality gap (P2, P4)."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from solver.batch import Method, Progress, Solution
from solver.batch_estimator import BatchEstimator
from solver.estimator_base import (
    as_matrix,
    class_codes,
    class_weights,
    generator,
    same_kind,
    warn_of_rounding,
)
from solver.kernels import Float64Array
from solver.multiclass import pairs_of
from solver.one_versus_one import solve_pairs
from solver.one_versus_one_classifier import OneVersusOneClassifier
from solver.rows import Matrix, n_rows, row_keys, take_rows


class FrankWolfeClassifier(OneVersusOneClassifier, BatchEstimator):
    """L2-SVM by FW, MFW, SWAP or PARTAN; more than two classes one-versus-one.

        minimise alpha'A alpha over the unit simplex,
        A_ij = y_i y_j (k(x_i, x_j) + 1) + delta_ij / (2 C w_y)

    Parameters: see `solver.batch_estimator.BatchEstimator` and, for the kernel,
    `solver.estimator_base.KernelEstimator`.
    class_weight: weights w of the classes as in scikit-learn: a dict, "balanced" or None.
    init: a fitted SFWClassifier or FrankWolfeClassifier; its support vectors that are rows of X
        with the same label give the first weights (a warm start), instead of the random ball.
        What clones its parameters, like a grid search, needs it as a
        `sklearn.frozen.FrozenEstimator`: a clone is not fitted.

    Attributes. n_iter_, gap_, objective_, trace_: see `BatchEstimator`; there is a problem for
    each pair of classes in `pairs_`, first the one with y = -1.
    classes_; support_: row numbers of the training set, ascending; support_vectors_,
    support_labels_; dual_coef_: alpha_i y_i, (pairs, support vectors); intercept_: y'alpha,
    (pairs,); n_support_: support vectors of each class; gamma_: the kernel's gamma.
    """

    def __init__(
        self,
        algorithm: Method = "mfw",
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        sampling: int | None = None,
        tol: float = 1e-4,
        max_iter: int = 1_000_000,
        class_weight: Any = None,
        start_size: int = 20,
        init: Any = None,
        cache_bytes: int = 1 << 30,
        trace: bool = False,
        progress: Callable[[Progress], None] | None = None,
        random_state: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.sampling = sampling
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.start_size = start_size
        self.init = init
        self.cache_bytes = cache_bytes
        self.trace = trace
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Solve for (n, d) rows, dense or scipy CSR, and (n,) labels of at least two classes.

        Raises ValueError for what cannot be learned; warns with ConvergenceWarning where
        max_iter ended a run above tol.
        """
        self._check_parameters()
        self._forget()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, order="C")
        self.classes_, codes = class_codes(y)
        X = as_matrix(X)
        kernel = self._kernel_for(X)
        self.gamma_ = kernel.gamma
        ridge = 0.5 / (self.C * class_weights(y, self.class_weight))
        self.pairs_ = pairs_of(len(self.classes_))
        starts = self._warm_start(X, y)
        warn_of_rounding(kernel, X, self.tol)
        weights = np.zeros((len(self.pairs_), len(codes)))
        solutions = []
        for i, (_, rows, sign, solution) in enumerate(
            solve_pairs(
                kernel,
                X,
                codes,
                ridge.tolist(),
                self._settings(),
                generator(self.random_state),
                starts,
                self._observe,
                self._clock(),
            )
        ):
            self._judge(solution, kernel, take_rows(X, rows), sign, ridge[codes[rows]])
            weights[i, rows] = solution.alpha * sign
            solutions.append(solution)
        self._keep(kernel, X, codes, weights, solutions)
        return self

    def _keep(
        self,
        kernel: Any,
        X: Matrix,
        codes: NDArray[np.int64],
        weights: Float64Array,
        solutions: list[Solution],
    ) -> None:
        self._keep_solutions(solutions)
        self.support_ = np.flatnonzero(np.any(weights != 0.0, axis=0))
        dual_coef = weights[:, self.support_]
        self._keep_support(
            kernel,
            take_rows(X, self.support_),
            codes[self.support_],
            dual_coef,
            dual_coef.sum(axis=1),
            q=np.array([-s.objective for s in solutions]),
            gap=np.array([s.gap for s in solutions]),
        )

    def _warm_start(self, X: Matrix, labels: NDArray[Any]) -> Float64Array | None:
        """(pairs, n) weights, not summing to one, of init's support vectors that are rows of X."""
        init = self.init
        if init is None:
            return None
        check_is_fitted(init)
        if not np.array_equal(init.classes_, self.classes_):
            raise ValueError(f"init knows the classes {init.classes_}, y has {self.classes_}")
        if init.n_features_in_ != self.n_features_in_:
            raise ValueError(
                f"init knows {init.n_features_in_} features, X has {self.n_features_in_}"
            )
        keys = zip(row_keys(X), labels, strict=True)
        place = {key: i for i, key in enumerate(keys)}
        weights = np.zeros((len(self.pairs_), n_rows(X)))
        known = row_keys(same_kind(X, as_matrix(init.support_vectors_)))
        for column, key in enumerate(zip(known, init.support_labels_, strict=True)):
            if key in place:
                weights[:, place[key]] += np.abs(init.dual_coef_[:, column])
        return weights
