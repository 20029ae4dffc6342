"""Class labels of a stream, declared before the first call of `partial_fit` or met on the way."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.estimators.base import as_matrix, class_codes, class_weights
from wolfstream.solver.estimators.checks import counted
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights


class LabelledPart(NamedTuple):
    """The samples of a call of `partial_fit`, as far as they count.

    codes: (n,) the places of their labels in `classes`.
    classes: those that are known from now on.
    declared: whether no others may come.
    class_weight: of the classes that were not known before.
    """

    rows: Matrix
    codes: NDArray[np.int64]
    weight: Weights
    classes: NDArray[Any]
    declared: bool
    class_weight: Float64Array


def labelled_part(
    estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any, *, first: bool
) -> LabelledPart:
    """Return what an estimator learns in a call of `partial_fit`, before which nothing changes.

    estimator: has `class_weight` and, unless the call is the first, `classes_` and `_declared`.
    Raises ValueError for rows or labels that cannot be learned.
    """
    X, y = validate_data(
        estimator, X, y, accept_sparse="csr", dtype=np.float64, order="C", reset=first
    )
    samples = counted(sample_weight, len(y))
    rows, y = samples.of(as_matrix(X), y)
    known = None if first else estimator.classes_
    declared = classes is not None if first else estimator._declared
    met, codes = numbered(known, y, classes, declared)
    new = met if known is None else met[len(known) :]
    weights = stream_class_weights(new, estimator.class_weight, declared)
    return LabelledPart(rows, codes, samples.weight, met, declared, weights)


def numbered(
    known: NDArray[Any] | None, y: NDArray[Any], classes: Any, declared: bool
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes of a stream after labels y, and the place in them of each label.

    They are the known ones, then new ones in ascending order.

    known: None in the first call.
    classes: what the caller declared in this call, or None.
    declared: whether the first call declared its classes, so that no others may come.

    Raises ValueError for labels that were not declared, for a declaration that differs from what
    is known, and for labels that are no classes.
    """
    if known is None and classes is not None:
        known = class_codes(classes)[0]
    elif known is None:
        check_classification_targets(y)
        met, codes = np.unique(y, return_inverse=True)
        return met, codes.astype(np.int64)
    elif classes is not None and set(np.unique(classes).tolist()) != set(known.tolist()):
        raise ValueError(f"classes is not the same as in the first call, {known}")
    if _is_text(known) != _is_text(y):
        raise ValueError(f"y has labels outside classes, {known}: numbers are not strings")
    places = _places(known, y)
    if places is not None:
        return known, places
    if declared:
        raise ValueError(f"y has labels outside classes, {known}")
    check_classification_targets(y)
    known = np.concatenate([known, np.setdiff1d(y, known)])
    places = _places(known, y)
    assert places is not None
    return known, places


def _places(classes: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return the place of each label in `classes`, in any order; None where one is not there."""
    place = {label: k for k, label in enumerate(classes.tolist())}
    places = [place.get(label, -1) for label in y.tolist()]
    return None if -1 in places else np.array(places, np.int64)


def stream_class_weights(labels: NDArray[Any], class_weight: Any, declared: bool) -> Float64Array:
    """Return the weights of classes that a stream has just met, or declared.

    class_weight: scikit-learn's parameter; raises ValueError for "balanced", and for weights of
    classes that are none of the declared ones.
    """
    if isinstance(class_weight, str):
        raise ValueError("class_weight='balanced' needs all samples: use fit, or give weights")
    if class_weight is not None and not declared:
        # The weight of a class that has not been met is no mistake.
        weights = {label: class_weight[label] for label in labels.tolist() if label in class_weight}
        return class_weights(labels, weights)
    return class_weights(labels, class_weight)


def _is_text(labels: NDArray[Any]) -> bool:
    return labels.dtype.kind in "US" or (labels.dtype.kind == "O" and isinstance(labels[0], str))
