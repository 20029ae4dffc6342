"""SFWClassifier: the online working set (P1) with scikit-learn's API."""

from dataclasses import field
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.calibration.classes import ClassCalibration
from wolfstream.solver.estimators.base import (
    AnyKernel,
    as_matrix,
    class_codes,
    class_weights,
    generator,
    parameters,
    same_kind,
)
from wolfstream.solver.estimators.certainty import CalibratedClasses
from wolfstream.solver.estimators.checks import check_choice, check_integer, check_norms, counted
from wolfstream.solver.estimators.conditioning import (
    PROBED,
    evenly,
    is_indefinite,
    warn_of_indefinite_matrix,
    warn_of_rounding,
)
from wolfstream.solver.estimators.pairwise import OneVersusOneClassifier
from wolfstream.solver.estimators.stream_labels import labelled_part
from wolfstream.solver.frank_wolfe.pairs import pairs_of
from wolfstream.solver.frank_wolfe.problem import is_indefinite as problem_is_indefinite
from wolfstream.solver.kernels.precision import FINEST
from wolfstream.solver.rows.matrix import Matrix, take_rows
from wolfstream.solver.rows.sample_weights import Weights, weights_of
from wolfstream.solver.working_set.learner import GRAM_BYTES, Algorithm, WorkingSet
from wolfstream.solver.working_set.view import dual_coefficients, support_view

# The number of rows that `fit` passes to the working set at a time.
PART = 8192
# Four kernel values in float64, those of two samples.
LEAST_BYTES = 32


@parameters
class SFWClassifier(AnyKernel, OneVersusOneClassifier, CalibratedClasses):
    """An L2-SVM by passes of SFW or MSFW; more than two classes one-versus-one.

    A sample is admitted to the working set when its gradient is above the best in the set. Each
    sample, admitted or not, moves the weights by one step and a few swaps. `partial_fit` keeps the
    order of its samples; `fit` shuffles them and drops anything learned before.

    algorithm: "sfw" (P1 Algorithm 1) or "msfw" (with away steps, P1 Algorithm 3).
    C, kernel, gamma, degree, coef0: see `estimators.base.KernelEstimator`; with "auto",
        gamma is that of the first call's rows.
    corrective_steps: the most swaps after a sample's step, more than two only while the set's gap
        exceeds half of q; with 0 the algorithm is exactly P1's.
    max_size: the bound on the samples in the set, None for no bound.
    gram_bytes_max: the bytes of kernel values that are kept. The matrix of n samples takes 4 n^2
        bytes for rbf up to C = 4096, otherwise 8 n^2; a larger set keeps some of its rows, and
        computes others again when a step asks for them. Of more than two classes each pair has
        a matrix of its members, as long as all of them fit.
    epochs: the number of passes of `fit`.
    class_weight: as in scikit-learn; "balanced" for `fit` only. A sample's slack costs C times the
        weight of its class and its own.
    random_state: that of the shuffling.

    Attributes: classes_; support_ (after `fit` alone): row numbers of the training set;
    support_vectors_, support_labels_ and, of each class, n_support_; dual_coef_:
    alpha_i y_i, (pairs, support vectors), for the pairs of classes in `pairs_`, first the one
    with y = -1; intercept_ (pairs,); objective_ and gap_ (pairs,): f = -alpha'A alpha, and how
    far it may be from its optimum over the working set, NaN for a pair without a sample so far
    or whose kernel matrix is indefinite, and both where the rounding of large values hides them;
    gamma_.

    `predict_proba` and `predict_set` come from `partial_fit`; see `estimators.certainty`. After
    `partial_fit` the attributes of support vectors and problems are computed when one is read.
    """

    _set_by = MappingProxyType(
        {
            "_view": "_see",
            **dict.fromkeys(
                (
                    *("support_vectors_", "support_labels_", "n_support_"),
                    *("dual_coef_", "intercept_", "objective_", "gap_"),
                ),
                "_publish",
            ),
        }
    )

    algorithm: Algorithm = field(default="msfw", kw_only=False)
    C: float = 1.0
    corrective_steps: int = 10
    max_size: int | None = None
    gram_bytes_max: int = GRAM_BYTES
    epochs: int = 1
    class_weight: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn (n, d) rows, dense or scipy CSR, with labels (n,), forgetting earlier ones.

        sample_weight: (n,) how much each sample counts; one of weight zero is left out.

        Raises ValueError for what cannot be learned.
        """
        self._check_parameters()
        self._forget()
        self._declared = False
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, order="C")
        samples = counted(sample_weight, len(y))
        rows, y = samples.of(as_matrix(X), y)
        self.classes_, codes = class_codes(y)
        weights = class_weights(y, self.class_weight, samples.weight)
        self._start(rows, weights, samples.weight)
        warn_of_rounding(self._learner.kernel, rows, 0.5 / self.C)
        entered = np.full(len(codes), -1, np.int64)
        random = generator(self.random_state)
        for _ in range(self.epochs):
            order = random.permutation(len(codes))
            for start in range(0, len(order), PART):
                part = order[start : start + PART]
                answers = self._learner.absorb(
                    take_rows(rows, part),
                    codes[part],
                    entered[part],
                    weights_of(samples.weight, part),
                )
                entered[part] = answers.entered
        support = self._publish()
        row_of = np.full(self._learner.store.added, -1, np.int64)
        row_of[entered[entered >= 0]] = np.flatnonzero(entered >= 0)
        self.support_ = samples.rows[row_of[self._learner.store.entered[support]]]
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn (n, d) rows with labels (n,) in their order, on top of what was learned.

        classes: all labels that may come, which scikit-learn's own estimators ask for in the
            first call; any other label is refused from then on. Without it every call may bring
            new classes, as in the server: they follow those in `classes_`, in ascending order.
            A prediction needs two.
        sample_weight: see `fit`. Where a later call brings larger ones than the first, kernel
            values stay as exact as they are: of rbf, C times a weight then counts 4,096 at most.

        Raises ValueError for rows or labels that cannot be learned; nothing is learned then.
        """
        self._check_parameters()
        first = not hasattr(self, "_learner")
        part = labelled_part(self, X, y, classes, sample_weight, first=first)
        rows = part.rows
        if first:
            self.classes_, self._declared = part.classes, part.declared
            self._start(rows, part.class_weight, part.weight)
        else:
            rows = same_kind(self._learner.store.rows.exact, rows)
            check_norms(self._learner.kernel, rows)
            self._meet_classes(part.classes, part.class_weight)
        warn_of_rounding(self._learner.kernel, rows, 0.5 / self.C)
        self._calibrate(self._learner.absorb(rows, part.codes, weight=part.weight), part.codes)
        self.__dict__.pop("support_", None)
        self._fall_behind()
        if self._learner.kernel.may_be_indefinite:
            self._publish()  # which warns where it is
        return self

    @property
    def learner(self) -> WorkingSet:
        """The learner itself. Raises NotFittedError."""
        check_is_fitted(self)
        return self._learner

    def resume(self, learner: WorkingSet, classes: NDArray[Any], n_features: int) -> Self:
        """Go on from a working set of these parameters that has learned samples elsewhere.

        classes: labels in the order of their numbers; more may come.
        """
        self._check_parameters()
        self._forget()
        self.classes_, self._declared, self.n_features_in_ = classes, False, n_features
        self.pairs_ = pairs_of(max(len(classes), 2))
        self._learner, self.gamma_ = learner, learner.kernel.gamma
        self._calibration = ClassCalibration()
        self._fall_behind()
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("algorithm", self.algorithm, ("sfw", "msfw"))
        check_integer("corrective_steps", self.corrective_steps, 0)
        if self.max_size is not None:
            check_integer("max_size", self.max_size, 2)
        check_integer("gram_bytes_max", self.gram_bytes_max, LEAST_BYTES)
        check_integer("epochs", self.epochs)

    def _meet_classes(self, classes: NDArray[Any], weights: Float64Array) -> None:
        """Open the problems of the classes that follow the known ones."""
        self.classes_ = classes
        self.pairs_ = pairs_of(max(len(classes), 2))
        self._learner.ridges.class_weight += weights.tolist()
        self._learner.meet_classes(len(classes))

    def _start(self, X: Matrix, weights: Float64Array, of_samples: Weights) -> None:
        kernel = self._kernel_for(X)
        self._calibration = ClassCalibration()
        self.gamma_ = kernel.gamma
        largest = 1.0 if of_samples is None else max(1.0, float(of_samples.max()))
        self._learner = WorkingSet(
            kernel,
            float(self.C),
            self.algorithm,
            self.corrective_steps,
            self.max_size,
            gram_bytes_max=self.gram_bytes_max,
            largest_weight=self._largest_weight(weights) * largest,
        )
        self._meet_classes(self.classes_, weights)

    def _largest_weight(self, weights: Float64Array) -> float:
        """Return the largest weight of a class, met or not."""
        given = list(self.class_weight.values()) if isinstance(self.class_weight, dict) else []
        return float(max([*weights, *given]))

    def _see(self) -> None:
        """Set the view from the working set."""
        # The last digits of a float32 value depend on the shape of its product, so a row's
        # prediction would depend on the other rows of the call.
        self._view = support_view(self._learner.view(), FINEST)

    def _publish(self) -> NDArray[np.int64]:
        """Set the attributes from the working set; the slots of the support vectors."""
        view = self._learner.view()
        support, dual_coef = dual_coefficients(view)
        weighted = view.q != 0.0
        if not self._learner.pairs.indefinite:
            weighted &= ~np.isnan(view.gap)
        self.objective_ = np.where(weighted, -view.q, np.nan)
        self.gap_ = view.gap.copy()
        vectors, codes = take_rows(view.rows.exact, support), self._learner.store.code[support]
        self._name_support(vectors, codes, dual_coef, view.bias)
        self._view = support_view(view, FINEST)
        if view.kernel.may_be_indefinite:
            self._probe()
        return support

    def _probe(self) -> None:
        """Warn where the matrix of a pair's working set is indefinite."""
        learner = self._learner
        for i, (problem, (a, b)) in enumerate(zip(learner.problems, self.pairs_, strict=True)):
            some = evenly(int(problem.size[0]), PROBED)
            sign, X = problem.sign[some], take_rows(learner.store.rows.exact, problem.column[some])
            ridge = np.where(
                sign < 0.0, learner.ridges.class_ridge(a), learner.ridges.class_ridge(b)
            )
            ridge = ridge * problem.inverse_weight[some]
            if problem_is_indefinite(problem) or is_indefinite(learner.kernel, X, sign, ridge):
                self.gap_[i] = np.nan
                warn_of_indefinite_matrix()
