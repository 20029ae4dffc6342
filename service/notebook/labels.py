"""Converts an estimator's labels and class weights to those of a model, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.errors import InvalidSamples
from wolfstream.service.notebook.rows import NoCounterpart
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.labels import read as read_labels
from wolfstream.service.spec.working_set import ClassWeight
from wolfstream.solver.stream.labels import LabelKey, key_of


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
        weighted = labels_of(np.array(list(class_weight), object))
        keys = list(map(key_of, weighted))
        label_of = dict(zip(keys, weighted, strict=True)) | label_of
        weight_of = dict(zip(keys, map(float, class_weight.values()), strict=True))
    weight_of |= dict(zip(map(key_of, labels), weights, strict=False))
    return [{"label": label_of[key], "weight": w} for key, w in weight_of.items() if w != 1.0]


def weights_of(named: Sequence[ClassWeight]) -> dict[Label, float] | None:
    """Return the parameter `class_weight` for the class weights in a spec."""
    return {each.label: each.weight for each in named} or None
