"""AssetClassifier: classification by ASSET (P5) with scikit-learn's API."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import validate_data

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.asset.features import takes_sparse
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.view import predict
from wolfstream.solver.calibration.classes import ClassCalibration
from wolfstream.solver.estimators.asset import AssetEstimator
from wolfstream.solver.estimators.base import (
    as_kind,
    as_matrix,
    class_codes,
    class_weights,
    generator,
    parameters,
)
from wolfstream.solver.estimators.certainty import CalibratedClasses
from wolfstream.solver.estimators.checks import check_norms, counted
from wolfstream.solver.estimators.stream_labels import labelled_part
from wolfstream.solver.rows.answers import Decisions
from wolfstream.solver.rows.matrix import Matrix


@parameters
class AssetClassifier(ClassifierMixin, AssetEstimator, CalibratedClasses):
    """A kernel SVM by stochastic subgradient steps in the primal; many classes one-versus-rest.

        minimise  lam/2 ||gamma||^2 + 1/n sum max(1 - y (phi(x)'gamma + b), 0)      (P5 PL)

    class_weight: as in scikit-learn, "balanced" for `fit` only: the loss of a sample counts by the
        weight of its class times its own, for the iterates of all classes.

    Other parameters and attributes: see `estimators.asset.AssetEstimator`; in addition classes_.
    `predict_proba` and `predict_set` come from `partial_fit`; see `estimators.certainty`.
    """

    _task = "classification"

    class_weight: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn (n, d) rows, dense or scipy CSR, with labels (n,), forgetting earlier ones.

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
        random = generator(self.random_state)
        self._start(rows, random)
        self._meet_classes(self.classes_, weights)
        self._run(rows, codes, samples.weight, random)
        self._publish()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn (n, d) rows with labels (n,) in their order, on top of what was learned.

        classes: all labels that may come, which scikit-learn's own estimators ask for in the
            first call; any other label is refused from then on. Without it every call may bring
            new classes, as in the server: they follow those in `classes_`, in ascending order.
            A prediction needs two.

        Raises ValueError for rows or labels that cannot be learned; nothing is learned then.
        """
        self._check_parameters()
        self._check_single()
        first = not hasattr(self, "_learner")
        part = labelled_part(self, X, y, classes, sample_weight, first=first)
        rows = part.rows
        if first:
            self._declared = part.declared
            self._start(rows, generator(self.random_state))
        else:
            rows = as_kind(takes_sparse(self._view.features), rows)
            check_norms(self._learner.kernel, rows)
        self._meet_classes(part.classes, part.class_weight)
        self._calibrate(self._learner.absorb(rows, part.codes, weight=part.weight), part.codes)
        self._publish()
        return self

    def _start(self, X: Matrix, random: np.random.Generator, **parameters: Any) -> None:
        super()._start(X, random, **parameters)
        self._calibration = ClassCalibration()

    def _meet_classes(self, classes: NDArray[Any], weights: Float64Array) -> None:
        """Make iterates for the classes that follow the known ones, with their weights."""
        self.classes_ = classes
        # Without any the learner has nothing to multiply.
        if self.class_weight is not None:
            self._learner.class_weight += weights.tolist()
        self._learner.meet_classes(len(classes))

    def resume(self, learner: Asset, classes: NDArray[Any], n_features: int) -> Self:
        """Go on from a learner of these parameters that has learned samples elsewhere.

        classes: labels in the order of their numbers; more may come.
        """
        self._resume(learner, n_features)
        self._calibration = ClassCalibration()
        self.classes_, self._declared = classes, False
        return self

    def decision_function(self, X: Any) -> Float64Array:
        """phi(x)'gamma + b, (n,), for two classes, positive for classes_[1]; else (n, classes)."""
        return self._predict(X).decision

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels of (n, d) rows."""
        decided = self._predict(X)
        return np.asarray(self.classes_[decided.prediction])

    def _predict(self, X: Any) -> Decisions:
        rows = self._rows_to_predict(X)  # which raises where nothing was fitted
        return Decisions(*predict(self._view, rows))
