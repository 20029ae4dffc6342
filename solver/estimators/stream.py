"""The base of the estimators that are a server's default model in process."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from solver.estimators.base import as_kind, as_matrix
from solver.estimators.checks import check_choice, check_integer
from solver.prepare.row_form import Missing
from solver.rows.matrix import Matrix, SparseRows, n_rows, take_rows
from solver.stream.model import StreamModel, Taught
from solver.stream.parameters import Task
from solver.stream.votes import Said

# The number of rows that `fit` passes to the model at a time.
_PART = 8192


class StreamEstimator(BaseEstimator):
    """Prepared rows, a learner of the papers, and a bank of adaptive learners that answers.

    It needs no parameter: rows may have features of any scales, and the bank finds steps and
    horizons while it learns. The same rows in calls of `partial_fit` of the same lengths give the
    same bits as a served model whose spec is `{}`.

    missing: "mean": a missing number, NaN, becomes the mean of its feature so far; "indicator":
        the mean, and one more feature that says so.
    temporal: whether the labels or targets before a row may help to predict it. Wrong where they
        come late, or where many rows are predicted at once.
    seed: of all randomness.

    Rows may be dense or scipy CSR, whichever the first ones were. Sparse rows are learned as they
    come, without preparation, and have no missing numbers.

    Attribute: learners_: what each learner of the bank is worth at present, a list of dicts: its
    parameters, weight, and mean loss over the last 1,000 samples and over all.
    """

    missing: Missing
    temporal: bool
    seed: int

    _task: Task
    _model: StreamModel
    _sparse: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    @property
    def learners_(self) -> list[dict[str, Any]]:
        """As described above."""
        check_is_fitted(self)
        return self._model.standing()

    def _check_parameters(self) -> None:
        """Raise ValueError for wrong parameters."""
        check_choice("missing", self.missing, ("mean", "indicator"))
        check_integer("seed", self.seed, 0)

    def _forget(self) -> None:
        """Drop all that was learned."""
        fitted = [name for name in vars(self) if name.endswith("_")]
        for name in (*fitted, "_model", "_sparse", "_declared", "_names"):
            self.__dict__.pop(name, None)

    def _rows(self, X: Any) -> Matrix:
        """Checked rows of the kind that was learned."""
        check_is_fitted(self)
        return as_kind(self._sparse, self._checked(X, reset=False))

    def _checked(self, *X_and_y: Any, reset: bool, **checks: Any) -> Any:
        """Rows as a `Matrix`, with targets if there are any; raises ValueError as scikit-learn."""
        checked = validate_data(
            self,
            *X_and_y,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            ensure_all_finite="allow-nan",
            reset=reset,
            **checks,
        )
        X, *y = checked if len(X_and_y) > 1 else (checked,)
        rows = as_matrix(X)
        if isinstance(rows, SparseRows) and np.isnan(X.data).any():
            raise ValueError("sparse rows contain NaN: leave out what is missing")
        return (rows, *y) if y else rows

    def _learn(self, X: Matrix, y: Any, taught: Taught) -> None:
        """Learn rows with labels or targets as one block of the stream."""
        if not hasattr(self, "_model"):
            self._model = StreamModel(
                self._task,
                taught,
                missing=self.missing,
                temporal=bool(self.temporal),
                seed=int(self.seed),
            )
            self._sparse = isinstance(X, SparseRows)
        self._model.absorb(as_kind(self._sparse, X), y)

    def _learn_parts(self, X: Matrix, y: Any, taught: Taught) -> None:
        """Learn many rows in blocks of a length that bounds the memory of their features."""
        for start in range(0, n_rows(X), _PART):
            part = slice(start, start + _PART)
            self._learn(take_rows(X, part), y[part], taught)

    def _said(self, X: Matrix) -> Said:
        """What the model says of rows."""
        return self._model.view().predict(X)
