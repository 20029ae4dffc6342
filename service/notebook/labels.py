"""The labels of an estimator as those of a model, and back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.errors import InvalidSamples
from service.notebook.rows import NoCounterpart
from service.samples.targets import Label, read_labels


def labels_of(classes: NDArray[Any]) -> list[Label]:
    """Labels of Python out of `classes_`. Raises NoCounterpart for those that no model takes."""
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
    """`classes_` of labels. Raises NoCounterpart where scikit-learn has no such labels."""
    if len({type(label) for label in labels}) > 1:
        raise NoCounterpart("its labels are of several types, which scikit-learn does not know")
    return np.array(labels)
