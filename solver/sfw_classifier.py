"""SFWClassifier: the online working set (P1) behind scikit-learn's API."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from solver.estimator_base import (
    PROBED,
    as_matrix,
    check_choice,
    check_integer,
    check_norms,
    class_codes,
    class_weights,
    evenly,
    generator,
    is_indefinite,
    same_kind,
    warn_of_indefinite_matrix,
    warn_of_rounding,
)
from solver.kernels import Float64Array
from solver.multiclass import pairs_of
from solver.one_versus_one_classifier import OneVersusOneClassifier
from solver.rows import Matrix, take_rows
from solver.view import dual_coefficients
from solver.working_set import Algorithm, WorkingSet

# Rows that `fit` shuffles and hands over at a time.
_PART = 8192


class SFWClassifier(OneVersusOneClassifier):
    """L2-SVM by one or more passes of SFW or MSFW; more than two classes one-versus-one.

    A sample is admitted to the working set when it beats the best gradient in the set; each
    sample, admitted or not, moves the weights by one step and a few swaps.
    `partial_fit` keeps the order of its samples, `fit` shuffles them and forgets what came before.

    algorithm: "sfw" (P1 Algorithm 1) or "msfw" (with away steps, Algorithm 3).
    C, kernel, gamma, degree, coef0: see `solver.estimator_base.KernelEstimator`; with "auto",
        gamma is that of the first call's rows.
    corrective_steps: at most so many swaps a sample, more than two only while the set's gap
        exceeds half of q; 0 is P1 to the letter.
    max_size: bound on the samples in the set, None for no bound. The kernel matrix of the set
        takes 4 max_size^2 bytes for rbf, 8 for the others.
    epochs: passes of `fit`. class_weight: as in scikit-learn; "balanced" for `fit` only.
    random_state: of the shuffling.

    Attributes: classes_; support_ (after `fit` alone): row numbers of the training set;
    support_vectors_, support_labels_ and, of each class, n_support_; dual_coef_:
    alpha_i y_i, (pairs, support vectors), for the pairs of classes in `pairs_`, first the one
    with y = -1; intercept_ (pairs,); objective_ and gap_ (pairs,): f = -alpha'A alpha, and how
    far it may be from its optimum over the working set, NaN for a pair without a sample so far;
    gamma_.
    """

    def __init__(
        self,
        algorithm: Algorithm = "msfw",
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        corrective_steps: int = 10,
        max_size: int | None = None,
        epochs: int = 1,
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.corrective_steps = corrective_steps
        self.max_size = max_size
        self.epochs = epochs
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn (n, d) rows, dense or scipy CSR, with labels (n,), forgetting earlier ones.

        Raises ValueError for what cannot be learned.
        """
        self._check_parameters()
        self._forget()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, order="C")
        rows = as_matrix(X)
        self.classes_, codes = class_codes(y)
        self._start(rows, class_weights(y, self.class_weight))
        warn_of_rounding(self._learner.kernel, rows, 0.5 / self.C)
        entered = np.full(len(codes), -1, np.int64)
        random = generator(self.random_state)
        for _ in range(self.epochs):
            order = random.permutation(len(codes))
            for start in range(0, len(order), _PART):
                part = order[start : start + _PART]
                answers = self._learner.absorb(take_rows(rows, part), codes[part], entered[part])
                entered[part] = answers.entered
        support = self._publish()
        row_of = np.full(self._learner.store.added, -1, np.int64)
        row_of[entered[entered >= 0]] = np.flatnonzero(entered >= 0)
        self.support_ = row_of[self._learner.store.entered[support]]
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn (n, d) rows with labels (n,) in their order, on top of what was learned.

        classes: all labels that may come; needed in the first call. Raises ValueError.
        """
        self._check_parameters()
        first = not hasattr(self, "_learner")
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, order="C", reset=first
        )
        rows = as_matrix(X)
        if first:
            weights = self._meet_classes(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes is not the same as in the first call, {self.classes_}")
        codes = np.searchsorted(self.classes_, y)
        codes[codes == len(self.classes_)] = 0
        if not np.array_equal(self.classes_[codes], y):
            raise ValueError(f"y has labels outside classes, {self.classes_}")
        if first:
            self._start(rows, weights)
        else:
            rows = same_kind(self._view.rows.exact, rows)
            check_norms(self._learner.kernel, rows)
        warn_of_rounding(self._learner.kernel, rows, 0.5 / self.C)
        self._learner.absorb(rows, codes.astype(np.int64))
        self._publish()
        self.__dict__.pop("support_", None)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("algorithm", self.algorithm, ("sfw", "msfw"))
        check_integer("corrective_steps", self.corrective_steps, 0)
        if self.max_size is not None:
            check_integer("max_size", self.max_size, 2)
        check_integer("epochs", self.epochs)

    def _meet_classes(self, classes: Any) -> Float64Array:
        """Set classes_ for a stream; their weights."""
        if classes is None:
            raise ValueError("classes must be given in the first call of partial_fit")
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all samples: use fit, or give weights")
        self.classes_ = class_codes(classes)[0]
        return class_weights(self.classes_, self.class_weight)

    def _start(self, X: Matrix, weights: Float64Array) -> None:
        kernel = self._kernel_for(X)
        self.gamma_ = kernel.gamma
        self.pairs_ = pairs_of(len(self.classes_))
        self._learner = WorkingSet(
            kernel,
            float(self.C),
            self.algorithm,
            self.corrective_steps,
            self.max_size,
            class_weight=weights.tolist(),
        )
        self._learner.meet_classes(len(self.classes_))

    def _publish(self) -> NDArray[np.int64]:
        """Set the attributes from the working set; the slots of the support vectors."""
        view = self._learner.view()
        support, dual_coef = dual_coefficients(view)
        started = view.q > 0.0
        self.objective_ = np.where(started, -view.q, np.nan)
        self.gap_ = np.where(started, view.gap, np.nan)
        vectors, codes = take_rows(view.rows.exact, support), self._learner.store.code[support]
        self._keep_support(view.kernel, vectors, codes, dual_coef, view.bias, view.q, view.gap)
        self._probe()
        return support

    def _probe(self) -> None:
        """Warn where the matrix of a pair's working set is indefinite."""
        learner = self._learner
        for problem, (a, b) in zip(learner.problems, self.pairs_, strict=True):
            some = evenly(int(problem.size[0]), PROBED)
            sign, X = problem.sign[some], take_rows(learner.store.rows.exact, problem.column[some])
            ridge = np.where(sign < 0.0, learner.ridge_of(a), learner.ridge_of(b))
            if problem.q[0] < 0.0 or is_indefinite(learner.kernel, X, sign, ridge):
                warn_of_indefinite_matrix()
