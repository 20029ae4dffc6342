"""Converts the form of an estimator's rows to that of a model, and back.

Estimators learn arrays, data frames with named columns, or scipy CSR matrices with numbered
columns. In a model, the number of a CSR column is its name.
"""

from typing import Any

from wolfstream.service.errors import WolfstreamError
from wolfstream.service.model.learner import Learner
from wolfstream.solver.prepare.named_rows import NameTable
from wolfstream.solver.prepare.schema import settled_numbers


class NoCounterpart(WolfstreamError, ValueError):
    """An estimator cannot become a model, or a model an estimator; the message says why."""


def copy_row_form(estimator: Any, learner: Learner, *, sparse: bool) -> None:
    """Give a new model, which does not prepare rows, the form of the rows of an estimator."""
    rows = learner.rows
    if sparse:
        number_columns(learner, estimator.n_features_in_)
    elif names := [str(name) for name in getattr(estimator, "feature_names_in_", ())]:
        schema = settled_numbers(tuple(names), strict=True)._replace(named=True)
        rows.form = rows.form._replace(schema=schema)
    else:
        rows.form = rows.form._replace(width=estimator.n_features_in_)


def number_columns(learner: Learner, features: int) -> None:
    """Make the rows of a model sparse, with features numbered from 0."""
    learner.rows.names = NameTable([str(number) for number in range(features)])
    learner.rows.form = learner.rows.form._replace(sparse=True)


def name_columns(estimator: Any, learner: Learner) -> None:
    """Give an estimator the names of a model's columns, if they have names."""
    schema = learner.rows.form.schema
    if schema is not None and schema.named:
        import numpy as np

        estimator.feature_names_in_ = np.array(schema.names, object)


def n_features_of(learner: Learner) -> int:
    """Return the number of columns of a model.

    Raises NoCounterpart if the model has learned nothing, or has rows that an estimator cannot
    learn.
    """
    if learner.model.spec.prepare is not None:
        raise NoCounterpart("its rows are prepared, and this estimator takes them as they come")
    dimension, names = learner.rows.dimension, learner.rows.names
    if dimension is None or not learner.sequence:
        raise NoCounterpart("it has learned nothing")
    if names is not None and not are_numbers(names.names()):
        raise NoCounterpart(
            "its rows are sparse and have names, which this estimator does not support"
        )
    return dimension


def check_width_settled(settled: bool) -> None:
    """Raise NoCounterpart while a model is still estimating its gamma."""
    if not settled:
        raise NoCounterpart(
            "its gamma is still being found: let it learn more samples, or give gamma as a number"
        )


def are_numbers(names: list[str]) -> bool:
    """Return whether names are consecutive numbers, like the names of CSR columns."""
    if not names or not names[0].isdecimal():
        return False
    first = int(names[0])
    return names == [str(first + i) for i in range(len(names))]
