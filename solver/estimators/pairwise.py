"""The base class of one-versus-one classifiers: predictions and support vectors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.estimators.base import KernelEstimator, as_given
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import FINEST
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.working_set.predictions import SetPredictions, predicted
from wolfstream.solver.working_set.view import expansion


class OneVersusOneClassifier(ClassifierMixin, KernelEstimator):
    """Predictions of all pairs of classes, and the attributes of their support vectors."""

    classes_: NDArray[Any]

    def decision_function(self, X: Any) -> Float64Array:
        """sum_i alpha_i y_i k(x_i, x) + b, (n,), for two classes, positive for classes_[1].

        For more classes (n, classes): one-versus-one votes, ties broken by the margins.
        """
        return self._predict(X).decision

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels of (n, d) rows."""
        answer = self._predict(X)
        return np.asarray(self.classes_[answer.prediction])

    def _predict(self, X: Any) -> SetPredictions:
        rows = self._rows_to_predict(X)  # which raises where nothing was fitted
        return predicted(self._view, rows)

    def _keep_support(
        self,
        kernel: Kernel,
        vectors: Matrix,
        codes: NDArray[np.int64],
        dual_coef: Float64Array,
        intercept: Float64Array,
        q: Float64Array,
        gap: Float64Array,
    ) -> None:
        """Set the attributes of n support vectors with class codes (n,), and the view.

        dual_coef: (pairs, n) alpha_i y_i.
        intercept, q, gap: (pairs,), see `view.WorkingSetView`.
        """
        self._name_support(vectors, codes, dual_coef, intercept)
        n_classes = len(self.classes_)
        # The last digits of a float32 value depend on the shape of its product, so a row's
        # prediction would depend on the other rows of the call.
        self._view = expansion(kernel, vectors, n_classes, dual_coef, intercept, q, gap, FINEST)

    def _name_support(
        self,
        vectors: Matrix,
        codes: NDArray[np.int64],
        dual_coef: Float64Array,
        intercept: Float64Array,
    ) -> None:
        """Set the attributes of n support vectors; see `_keep_support`."""
        self.dual_coef_, self.intercept_ = dual_coef, intercept
        self.support_labels_ = self.classes_[codes]
        self.n_support_ = np.bincount(codes, minlength=len(self.classes_))
        self.support_vectors_ = as_given(vectors)
