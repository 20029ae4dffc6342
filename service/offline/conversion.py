"""Converts the kernel, labels, weights and rows of an estimator to those of a model, and back.

Estimators learn arrays, data frames with named columns, or scipy CSR matrices with numbered
columns. In a model, the number of a CSR column is its name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.errors import InvalidSamples, WolfstreamError
from wolfstream.service.model.learner import Learner
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.labels import read as read_labels
from wolfstream.service.spec.kernel import KernelSpec, PolynomialSpec, RbfSpec
from wolfstream.service.spec.working_set import ClassWeight
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.labels import LabelKey, key_of
from wolfstream.solver.prepare.named_rows import NameTable
from wolfstream.solver.prepare.schema import settled_numbers


class NoCounterpart(WolfstreamError, ValueError):
    """An estimator cannot become a model, or a model an estimator; the message says why."""


def plain_kernel(kernel: Kernel) -> dict[str, Any]:
    """Return a kernel in the form of a spec, with gamma as a number."""
    plain: dict[str, Any] = {"type": kernel.type}
    if kernel.type != "linear":
        plain["gamma"] = float(kernel.gamma)
    if kernel.type == "polynomial":
        plain |= {"degree": int(kernel.degree), "coef0": float(kernel.coef0)}
    return plain


def kernel_parameters(spec: KernelSpec, kernel: Kernel) -> dict[str, Any]:
    """Return the parameters of an estimator for a kernel.

    Args:
        spec: the kernel in the model's spec.
        kernel: the same kernel, with the gamma that the model has chosen.
    """
    parameters: dict[str, Any] = {"kernel": spec.type}
    if isinstance(spec, RbfSpec | PolynomialSpec):
        parameters["gamma"] = kernel.gamma
    if isinstance(spec, PolynomialSpec):
        parameters |= {"degree": spec.degree, "coef0": spec.coef0}
    return parameters


def labels_of(classes: NDArray[Any]) -> list[Label]:
    """Convert `classes_` to labels. Raises NoCounterpart for labels that no model can have."""
    values = [k.item() if isinstance(k, np.generic) else k for k in classes.tolist()]
    try:
        return read_labels(values, single=False)
    except InvalidSamples as error:
        fault = error.errors[0]
        raise NoCounterpart(
            f"the label {values[fault['row']]!r:.60} {fault['detail']}; fit with y.astype(str) or "
            "y.astype(int)"
        ) from None


def classes_of(labels: Sequence[Label]) -> NDArray[Any]:
    """Convert labels to `classes_`. Raises NoCounterpart if they have several types."""
    if len({type(label) for label in labels}) > 1:
        raise NoCounterpart("its labels are of several types, which scikit-learn does not support")
    return np.array(labels)


def plain_weights(
    labels: Sequence[Label], weights: Sequence[float], class_weight: Any
) -> list[dict[str, Any]]:
    """Return class weights in the form of a spec, without weights of 1.

    Args:
        labels: the classes that the estimator knows.
        weights: the weights of these classes; empty if all are 1.
        class_weight: the estimator's parameter, which may also weight classes not known yet.

    Raises NoCounterpart for labels that no model can have.
    """
    weight_of: dict[LabelKey, float] = {}
    label_of = dict(zip(map(key_of, labels), labels, strict=True))
    if isinstance(class_weight, Mapping):
        weighted_labels = labels_of(np.array(list(class_weight), object))
        keys = list(map(key_of, weighted_labels))
        label_of = dict(zip(keys, weighted_labels, strict=True)) | label_of
        weight_of = dict(zip(keys, map(float, class_weight.values()), strict=True))
    weight_of |= dict(zip(map(key_of, labels), weights, strict=False))
    return [{"label": label_of[key], "weight": w} for key, w in weight_of.items() if w != 1.0]


def weights_of(class_weights: Sequence[ClassWeight]) -> dict[Label, float] | None:
    """Return the parameter `class_weight` for the class weights in a spec; None without any."""
    return {class_weight.label: class_weight.weight for class_weight in class_weights} or None


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
