"""An estimator's labels and class weights as those of a model, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.errors import InvalidSamples
from wolfstream.service.notebook.rows import NoCounterpart
from wolfstream.service.samples.targets import Label, read_labels
from wolfstream.service.spec.class_weight import ClassWeight
from wolfstream.solver.stream.labels import key_of


def labels_of(classes: NDArray[Any]) -> list[Label]:
    """Return `classes_` as labels of Python. Raises NoCounterpart for those that no model takes."""
    found = [k.item() if isinstance(k, np.generic) else k for k in classes.tolist()]
    try:
        return read_labels(found, single=False)
    except InvalidSamples as error:
        wrong = error.errors[0]
        raise NoCounterpart(
            f"the label {found[wrong['row']]!r:.60} {wrong['detail']}; fit with y.astype(str) or "
            "y.astype(int)"
        ) from None


def classes_of(labels: Sequence[Label]) -> NDArray[Any]:
    """Return labels as `classes_`. Raises NoCounterpart for those that scikit-learn cannot have."""
    if len({type(label) for label in labels}) > 1:
        raise NoCounterpart("its labels are of several types, which scikit-learn does not know")
    return np.array(labels)


def plain_weights(
    labels: Sequence[Label], weights: Sequence[float], given: Any
) -> list[dict[str, Any]]:
    """Return the class weights that a spec names, all those other than 1.

    labels, weights: of the classes that were met; no weights where all count 1. given: the
        parameter `class_weight`, which has the weights of classes that may still come.

    Raises NoCounterpart.
    """
    found: dict[Any, float] = {}
    if isinstance(given, Mapping):
        named = labels_of(np.array(list(given), object))
        found = dict(zip(map(key_of, named), map(float, given.values()), strict=True))
    found |= dict(zip(map(key_of, labels), weights, strict=False))
    return [{"label": label, "weight": w} for (_, label), w in found.items() if w != 1.0]


def weights_of(named: Sequence[ClassWeight]) -> dict[Label, float] | None:
    """Return the parameter `class_weight` for the weights that a spec names."""
    return {each.label: each.weight for each in named} or None
