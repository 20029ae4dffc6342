"""The base of the estimators that are a server's default model in process, and their tables.

Data frames, and dicts as River has them, are read by the names of their columns. Neither pandas
nor polars is imported: a data frame is what has `columns` and `to_numpy`.
"""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import (
    _safe_indexing,
    assert_all_finite,
    check_consistent_length,
    column_or_1d,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from wolfstream.solver.adaptive.class_weights import ClassWeight
from wolfstream.solver.adaptive.settings import Temporal
from wolfstream.solver.estimators.base import as_kind, as_matrix, parameters
from wolfstream.solver.estimators.checks import (
    are_plain_targets,
    check_choice,
    check_integer,
    counted,
    is_plain_matrix,
)
from wolfstream.solver.labels import Task
from wolfstream.solver.prepare.cells import Cells, cells_of_rows, seconds_of_date
from wolfstream.solver.prepare.named_rows import (
    NamedRows,
    Rows,
    n_rows,
    named_values,
    rows_between,
    table_of,
)
from wolfstream.solver.prepare.row_form import Missing, PreparationParameters, RowForm
from wolfstream.solver.prepare.schema import Misfit
from wolfstream.solver.rows.matrix import SparseRows, take_rows
from wolfstream.solver.rows.sample_weights import Weights, weights_of
from wolfstream.solver.stream.explanations import Explanation
from wolfstream.solver.stream.model import PaperHead, StreamModel
from wolfstream.solver.stream.rows import StreamRows
from wolfstream.solver.stream.votes import HeadAnswer


class OneAtATime:
    """Rows that are dicts; each is treated like the dicts in a list by `StreamEstimator`.

    River is not imported. If it has been when an estimator is made, the class is registered with
    it as a virtual subclass, since its metrics check models by `isinstance`.
    """

    _supervised = True
    _kind_in_river: ClassVar[str]

    def __post_init__(self) -> None:
        river = sys.modules.get("river.base")
        if river is not None:
            getattr(river, self._kind_in_river).register(type(self))


# What pandas has where a value is missing.
_MISSING_TYPES = ("NAType", "NaTType")


def rows_by_name(X: Any, timestamps: Collection[str] = ()) -> Rows | None:
    """Return the rows of a data frame or of a list of dicts; None for anything else.

    timestamps: names of columns whose dates and times become seconds since 1970, UTC where they
    have no zone; elsewhere they are refused.

    A data frame's columns have names if all of them are texts. The names of dicts may be anything:
    rows named by texts may turn out to be sparse, those of other names never do. Values are
    numbers, booleans, texts, and None or NaN where one is missing. Raises ValueError, TypeError
    for others.
    """
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        return _finite(_of_frame(X, timestamps))
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping):
        return _finite(_of_dicts(X, timestamps))
    return None


@contextmanager
def misfits_as_value_errors() -> Iterator[None]:
    """Have a ValueError about rows that do not fit say where they do not."""
    try:
        yield
    except Misfit as misfit:
        raise ValueError(f"row {misfit.row} of X: {misfit.full_detail()}") from None


def _of_frame(X: Any, timestamps: Collection[str]) -> Rows:
    """Column by column: polars' own array of all columns has dates as numbers beside numbers."""
    columns = list(X.columns)
    if len(set(columns)) < len(columns):
        raise ValueError("some columns of X have the same name")
    if not columns or not len(X):
        raise ValueError(f"X is a data frame of shape {(len(X), len(columns))}: it has no values")
    names = columns if all(isinstance(name, str) for name in columns) else None
    arrays = [np.asarray(X[name].to_numpy()) for name in columns]
    if all(array.dtype.kind in "fiub" for array in arrays):
        numbers = np.column_stack([array.astype(np.float64) for array in arrays])
        return numbers if names is None else table_of(names, numbers)
    values = [
        [_value(value, name in timestamps) for value in _values(array)]
        for name, array in zip(columns, arrays, strict=True)
    ]
    return table_of(names, [list(row) for row in zip(*values, strict=True)])


def _values(array: Any) -> list[Any]:
    """Return a column's values; dates and times as Python's own, not as numbers of nanoseconds."""
    if array.dtype.kind in "mM":
        array = array.astype(f"{array.dtype.str[1:3]}[us]")
    values: list[Any] = array.tolist()
    return values


def _of_dicts(rows: Sequence[Mapping[Any, Any]], timestamps: Collection[str]) -> Cells | NamedRows:
    plain = [
        {name: _value(value, name in timestamps) for name, value in row.items()} for row in rows
    ]
    if all(isinstance(name, str) for row in plain for name in row):
        return named_values(plain)
    by_text = [{str(name): value for name, value in row.items()} for row in plain]
    return cells_of_rows(by_text)._replace(whole=True)


def _value(value: Any, moment: bool) -> float | str | None:
    """Return a value of a table as a number, a text, or None if it is missing.

    moment: whether a date and time is one that was asked for.
    """
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Real | Decimal):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"X has a number beyond float64, {value!r:.40}") from None
    if type(value).__name__ in _MISSING_TYPES:
        return None
    if (seconds := seconds_of_date(value)) is not None:
        if moment:
            return seconds
        raise TypeError(f"X has {value!r:.40}, a date: name its column in timestamps")
    raise TypeError(f"X has {value!r:.40}, which is neither a number nor a text")


def _finite(rows: Rows) -> Rows:
    numbers = rows.value if isinstance(rows, NamedRows) else rows
    if np.isinf(numbers.numbers if isinstance(numbers, Cells) else numbers).any():
        raise ValueError("X contains infinity")
    return rows


# The number of rows that `fit` passes to the model at a time.
_PART = 8192


@parameters
class StreamParameters:
    """The parameters of both estimators; see `StreamEstimator`."""

    missing: Missing = "mean"
    timestamps: Sequence[str] = ()
    temporal: Temporal = "auto"
    seed: int = 0


class StreamEstimator(StreamParameters, BaseEstimator):
    """Prepared rows, a learner of the papers, and a bank of adaptive learners that answers.

    It needs no parameter: rows may have features of any scales, and the bank finds steps and
    horizons while it learns. The same rows in calls of `partial_fit` of the same lengths give the
    same bits as a served model whose spec is `{}`.

    missing: "mean": a missing number, NaN, becomes the mean of its feature so far; "indicator":
        the mean, and one more feature that says so.
    timestamps: names of columns that are dates and times: of Python, numpy or pandas, texts of
        ISO 8601, or seconds since 1970. The hour of the day, the day of the week and the time that
        has passed are learned.
    temporal: whether the labels or targets before a row help to predict it. "auto": a row that is
        predicted alone, where the row predicted before it has been learned meanwhile. True: always,
        which is wrong where they come late, or where many rows are predicted at once.
    seed: of all randomness.

    Rows may be arrays, data frames or lists of dicts. Those of the latter two keep their names, in
    any order: an unknown name is refused, an absent one is a missing value, texts are categories;
    the first 128 samples settle which columns there are (`prepare.schema`). Arrays are taken by
    the places of their columns.

    A sample's loss counts by its `sample_weight`, in every learner; one of weight zero is left out.
    What is found of rows and targets alone, their scales and the widths of kernels, is found
    whatever the weights, and so are the losses in learners_.

    Rows may be scipy CSR as well, if the first ones were. They are learned as they come, without
    preparation, and have no missing numbers.

    Attribute: learners_: what each learner of the bank is worth at present, a list of dicts: its
    parameters, weight, and mean loss over the last 1,000 samples and over all.
    """

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
        return self._model.expert_weights()

    @property
    def model(self) -> StreamModel:
        """The model itself. Raises NotFittedError."""
        check_is_fitted(self)
        return self._model

    @property
    def csr_features(self) -> int | None:
        """Columns of the rows if these are scipy CSR; None if they are not."""
        check_is_fitted(self)
        return int(self.n_features_in_) if self._sparse else None

    def _resume(self, model: StreamModel, csr_features: int | None) -> None:
        """Go on from a model of these parameters that has learned samples elsewhere.

        csr_features: columns of its rows if they are scipy CSR; None if they are not.
        """
        self._check_parameters()
        self._forget()
        self._model, self._sparse = model, csr_features is not None
        self._name_features(model.rows)
        if csr_features is not None:
            self.n_features_in_ = csr_features

    def _check_parameters(self) -> None:
        """Raise ValueError for wrong parameters."""
        check_choice("missing", self.missing, ("mean", "indicator"))
        check_integer("seed", self.seed, 0)
        temporal_of(self.temporal)
        if isinstance(self.timestamps, str):
            raise ValueError(f"timestamps is {self.timestamps!r}; it must be a list of names")

    def _class_weight(self) -> ClassWeight | None:
        """Return the weights of the classes known by now, as the model numbers labels."""
        return None

    @property
    def _preparing(self) -> PreparationParameters:
        return PreparationParameters(
            self.missing, timestamps=tuple(self.timestamps), names="settled"
        )

    def _forget(self) -> None:
        """Drop all that was learned."""
        fitted = [name for name in vars(self) if name.endswith("_")]
        for name in (*fitted, "_model", "_sparse", "_declared"):
            self.__dict__.pop(name, None)

    def _samples(
        self, X: Any, y: Any, sample_weight: Any, *, y_numeric: bool = False
    ) -> tuple[Any, Any, Weights]:
        """Checked rows that the model can learn, with their labels or targets and weights.

        Raises ValueError, TypeError.
        """
        weight = None
        if sample_weight is not None:
            # What only converts itself to an array has no length.
            X, y = (given if hasattr(given, "__len__") else np.asarray(given) for given in (X, y))
            check_consistent_length(X, y)
            rows_that_count, weight = counted(sample_weight, len(y))
            X, y = _safe_indexing(X, rows_that_count), _safe_indexing(y, rows_that_count)
        if self._are_checked(X) and are_plain_targets(y, len(X), numeric=y_numeric):
            return X, y, weight
        first = not hasattr(self, "_model")
        by_name = rows_by_name(X, self.timestamps)
        rows: Rows | SparseRows
        if by_name is None:
            rows, y = self._validated(X, y, reset=first, y_numeric=y_numeric)
        else:
            rows, y = by_name, _column(y, n_rows(by_name), y_numeric=y_numeric)
        if first:
            form = RowForm(self._preparing)
        else:
            rows, form = self._of_kind(rows), self._model.rows.form
        if not isinstance(rows, SparseRows):
            with misfits_as_value_errors():
                form.after(rows)
        return rows, y, weight

    def _rows(self, X: Any) -> Rows | SparseRows:
        """Checked rows of the kind that was learned, to predict."""
        if self._are_checked(X):
            return X  # type: ignore[no-any-return]
        check_is_fitted(self)
        rows = rows_by_name(X, self.timestamps)
        return self._of_kind(self._validated(X, reset=False) if rows is None else rows)

    def _are_checked(self, X: Any) -> bool:
        """Whether rows are as `_validated` would return them, and fit; seen without scikit-learn.

        Its checks take longer than the prediction of a row.
        """
        if not hasattr(self, "_model") or self._sparse:
            return False
        form = self._model.rows.form
        if form.width is None or form.schema is not None or form.sparse:
            return False
        return is_plain_matrix(X, form.width)

    def _of_kind(self, rows: Rows | SparseRows) -> Rows | SparseRows:
        """Return rows as sparse ones or not, as the first ones were. Raises ValueError."""
        if isinstance(rows, np.ndarray | SparseRows):
            return as_kind(self._sparse, rows)
        if self._sparse:
            raise ValueError("sparse rows without names were learned, and X has names")
        return rows

    def _validated(self, *X_and_y: Any, reset: bool, **checks: Any) -> Any:
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

    def _learn(
        self, rows: Rows | SparseRows, y: Any, head: PaperHead, weight: Weights = None
    ) -> None:
        """Learn rows with labels or targets as one block of the stream."""
        if not hasattr(self, "_model"):
            self._model = StreamModel(
                self._task,
                head,
                preparing=self._preparing,
                temporal=temporal_of(self.temporal),
                seed=int(self.seed),
                class_weight=self._class_weight(),
            )
            self._sparse = isinstance(rows, SparseRows)
        self._model.weigh(self._class_weight())
        self._model.absorb(rows, y, weight)
        self._name_features(self._model.rows)

    def _name_features(self, rows: StreamRows) -> None:
        """Set scikit-learn's attributes to the names that rows have, if they have any."""
        schema = rows.form.schema
        if schema is not None and schema.named:
            if len(getattr(self, "feature_names_in_", ())) != len(schema.columns):
                self.feature_names_in_ = np.array(schema.names, object)
        elif rows.names is not None:
            self.__dict__.pop("feature_names_in_", None)
        if rows.dimension is not None:
            self.n_features_in_ = rows.dimension

    def _learn_parts(
        self, rows: Rows | SparseRows, y: Any, head: PaperHead, weight: Weights = None
    ) -> None:
        """Learn many rows in blocks of a length that bounds the memory of their features."""
        for start in range(0, len(y), _PART):
            part = slice(start, min(start + _PART, len(y)))
            some = _rows_in(rows, part)
            self._learn(some, y[part], head, weights_of(weight, part))

    def _head_answer(self, rows: Rows | SparseRows) -> HeadAnswer:
        """Return the model's answers for rows. Raises ValueError for those that do not fit."""
        with misfits_as_value_errors():
            return self._model.view().predict(rows, self._model.order)

    def _explained(self, X: Any, most: int) -> Iterator[Explanation]:
        """Yields why the model says what it says. Raises ValueError for rows that do not fit."""
        check_integer("most", most)
        rows = self._rows(X)
        with misfits_as_value_errors():
            yield from self._model.view().explain(rows, self._model.order)


def temporal_of(given: Any) -> Temporal:
    """Return the parameter `temporal`. Raises ValueError."""
    if isinstance(given, (bool, np.bool_)):
        return bool(given)
    if given != "auto":
        raise ValueError(f"temporal is {given!r}; it must be 'auto', True or False")
    return "auto"


def gradient_of(explanation: Explanation, most: int) -> list[dict[str, Any]]:
    """Return the features that move an answer most: feature, category, gradient, deviation."""
    return [influence._asdict() for influence in explanation.gradient[:most]]


def _rows_in(rows: Rows | SparseRows, part: slice) -> Rows | SparseRows:
    if isinstance(rows, SparseRows):
        return take_rows(rows, part)
    return rows_between(rows, part.start, part.stop)


def _column(y: Any, n: int, *, y_numeric: bool) -> NDArray[Any]:
    """n labels or targets of rows that scikit-learn has not seen. Raises ValueError."""
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_consistent_length(range(n), y)
    return np.asarray(y, np.float64) if y_numeric else y
