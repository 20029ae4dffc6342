"""FrankWolfeClassifier: a kernel SVM solved to a certified duality gap (P2, P4)."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.estimators.base import (
    as_matrix,
    class_codes,
    class_weights,
    generator,
    parameters,
    same_kind,
)
from wolfstream.solver.estimators.batch import BatchEstimator
from wolfstream.solver.estimators.checks import counted
from wolfstream.solver.estimators.pairwise import OneVersusOneClassifier
from wolfstream.solver.frank_wolfe.driver import Solution
from wolfstream.solver.frank_wolfe.one_versus_one import solve_pairs
from wolfstream.solver.frank_wolfe.pairs import pairs_of
from wolfstream.solver.rows.matrix import Matrix, n_rows, row_keys, take_rows


@parameters
class FrankWolfeClassifier(OneVersusOneClassifier, BatchEstimator):
    """An L2-SVM by FW, MFW, SWAP, PARTAN or SMO; more than two classes one-versus-one.

        minimise alpha'A alpha over the unit simplex,
        A_ij = y_i y_j (k(x_i, x_j) + 1) + delta_ij / (2 C w_i)

    Parameters: see `estimators.batch.BatchEstimator` and, for the kernel,
    `estimators.base.KernelEstimator`.
    class_weight: weights of the classes as in scikit-learn: a dict, "balanced" or None. w_i is
        that of the sample's class times its own, so that it counts as w_i equal samples.
    init: a fitted SFWClassifier or FrankWolfeClassifier for a warm start: those of its support
        vectors that are rows of X with the same label give the first weights, instead of the
        random ball. A grid search clones its parameters and needs init as a
        `sklearn.frozen.FrozenEstimator`, because a clone is not fitted.

    Attributes: see `BatchEstimator`, with a problem for each pair of classes, and

    pairs_: the pairs of classes, first the class with y = -1.
    classes_: the labels.
    support_: the indices of the support vectors in the training set, ascending.
    support_vectors_: their rows.
    support_labels_: their labels.
    dual_coef_: alpha_i y_i, (pairs, support vectors).
    intercept_: y'alpha, (pairs,).
    n_support_: the number of support vectors of each class.
    gamma_: the kernel's gamma.
    """

    tol: float = 0.1
    class_weight: Any = None
    init: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve for (n, d) rows, dense or scipy CSR, and (n,) labels of at least two classes.

        sample_weight: (n,) how much each sample counts; one of weight zero is left out. gamma
            "auto" is that of the rows whatever their weights.

        Raises ValueError for rows, labels or parameters that cannot be learned; warns with
        ConvergenceWarning where max_iter ended a run above tol.
        """
        self._check_parameters()
        self._forget()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, order="C")
        samples = counted(sample_weight, len(y))
        X, y = samples.of(as_matrix(X), y)
        self.classes_, codes = class_codes(y)
        kernel = self._kernel_for(X)
        self.gamma_ = kernel.gamma
        cost = self.C * class_weights(y, self.class_weight, samples.weight)[codes]
        ridge = 0.5 / cost
        if samples.weight is not None:
            ridge = ridge / samples.weight
        self.pairs_ = pairs_of(len(self.classes_))
        starts = self._warm_start(X, y)
        weights = np.zeros((len(self.pairs_), len(codes)))
        solutions = []
        for i, (_, rows, sign, solution) in enumerate(
            solve_pairs(
                kernel,
                X,
                codes,
                ridge,
                self._settings(),
                generator(self.random_state),
                starts,
                self._observe,
                self._clock(),
            )
        ):
            weights[i, rows] = solution.alpha * sign
            solutions.append(self._judged(solution, kernel, take_rows(X, rows), sign, ridge[rows]))
        self._keep(kernel, X, codes, weights, solutions)
        self.support_ = samples.rows[np.any(weights != 0.0, axis=0)]
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
        support = np.flatnonzero(np.any(weights != 0.0, axis=0))
        dual_coef = weights[:, support]
        self._keep_support(
            kernel,
            take_rows(X, support),
            codes[support],
            dual_coef,
            dual_coef.sum(axis=1),
            q=np.array([-s.objective for s in solutions]),
            gap=np.array([s.gap for s in solutions]),
        )

    def _warm_start(self, X: Matrix, labels: NDArray[Any]) -> Float64Array | None:
        """Return the weights, (pairs, n), of init's support vectors that are rows of X."""
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
        row_of_key = {key: i for i, key in enumerate(keys)}
        weights = np.zeros((len(self.pairs_), n_rows(X)))
        known = row_keys(same_kind(X, as_matrix(init.support_vectors_)))
        for column, key in enumerate(zip(known, init.support_labels_, strict=True)):
            if key in row_of_key:
                weights[:, row_of_key[key]] += np.abs(init.dual_coef_[:, column])
        return weights
