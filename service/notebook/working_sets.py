"""SFWClassifier and FrankWolfeClassifier as models of a working set, and back."""

from typing import Any

import numpy as np

from wolfstream.service.heads.classification import ClassificationHead
from wolfstream.service.heads.regression import RegressionHead
from wolfstream.service.heads.working_set import SetLearner
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.notebook.kernels import kernel_parameters, plain_kernel
from wolfstream.service.notebook.labels import classes_of, labels_of, plain_weights, weights_of
from wolfstream.service.notebook.rows import (
    NoCounterpart,
    check_settled,
    features_of,
    name_columns,
    take_rows_of,
)
from wolfstream.service.spec.heads import DEFAULT_SET, HEADS, LARGEST_SET, Task
from wolfstream.service.spec.model import read_spec
from wolfstream.solver.estimators.base import as_matrix
from wolfstream.solver.estimators.frank_wolfe_classifier import FrankWolfeClassifier
from wolfstream.solver.estimators.sfw_classifier import SFWClassifier
from wolfstream.solver.estimators.sfw_regressor import SFWRegressor
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import Matrix, SparseRows


def learner_of_set(estimator: SFWClassifier) -> Learner:
    """Return a model with the working set of an estimator. Raises NoCounterpart, Invalid."""
    found, labels = estimator.learner, labels_of(estimator.classes_)
    # Classes that may still come have the weights that were given.
    own = {
        "algorithm": found.algorithm,
        "C": float(found.ridges.C),
        "corrective_steps": int(found.corrective_steps),
        "max_size": bound_of(found.max_size, found.store.size),
        "class_weight": plain_weights(labels, found.ridges.class_weight, estimator.class_weight),
        "scores": "coupled" if found.coupled else "counted",
    }
    learner = empty_model(found.kernel, own)
    head = _head_of(learner)
    head.meet(labels)
    if head.learner.current.precision != found.precision:
        raise NoCounterpart("C times a weight of its samples is more than a server's set may have")
    return with_state_of(estimator, learner, head, found.store.rows.exact)


def learner_of_solution(estimator: FrankWolfeClassifier) -> Learner:
    """Return a model that goes on from the solution of an estimator by MSFW.

    Its sequence counts the support vectors. Raises NoCounterpart, Invalid, NotFittedError.
    """
    labels, alpha = labels_of(estimator.classes_), np.abs(estimator.dual_coef_)
    if isinstance(estimator.class_weight, str):
        raise NoCounterpart(
            f"class_weight={estimator.class_weight!r} says no weights: fit with a dict of them"
        )
    own = {
        "C": float(estimator.C),
        "max_size": bound_of(None, alpha.shape[1]),
        "class_weight": plain_weights([], [], estimator.class_weight),
    }
    degree, coef0 = int(estimator.degree), float(estimator.coef0)
    kernel = Kernel(estimator.kernel, float(estimator.gamma_), degree, coef0)  # type: ignore[arg-type]
    learner = empty_model(kernel, own)
    head = _head_of(learner)
    head.meet(labels)
    X = as_matrix(estimator.support_vectors_)
    codes = np.searchsorted(estimator.classes_, estimator.support_labels_)
    head.learner.current.adopt(X, codes.astype(np.int64), alpha)
    take_rows_of(estimator, learner, sparse=isinstance(X, SparseRows))
    learner.sequence = alpha.shape[1]
    return learner


def set_of(learner: Learner) -> SFWClassifier:
    """An estimator with the working set of a model that has nothing else. Raises NoCounterpart."""
    spec, head = learner.model.spec, learner.heads["working_set"]
    assert isinstance(head, ClassificationHead)
    own, features = spec.working_set, features_of(learner)
    assert own is not None
    if own.horizon is not None:
        raise NoCounterpart("its samples fade: the estimator has no horizon")
    check_settled(head.learner.frozen)
    found = head.learner.current
    estimator = SFWClassifier(
        own.algorithm,
        C=own.C,
        **kernel_parameters(spec.kernel, found.kernel),
        corrective_steps=own.corrective_steps,
        max_size=own.max_size,
        class_weight=weights_of(own.class_weight),
    )
    estimator.resume(found, classes_of(head.classes), features)
    estimator.calibration.restore(head.calibration.state())
    name_columns(estimator, learner)
    return estimator


def empty_model(kernel: Kernel, own: dict[str, Any], task: Task = "classification") -> Learner:
    """Return a fresh model of a working set alone. own: its part of the spec. Raises Invalid."""
    spec = read_spec(
        {
            "task": task,
            "kernel": plain_kernel(kernel),
            "prepare": None,
            **dict.fromkeys(HEADS),
            "working_set": own,
            "serve": "working_set",
        }
    )
    return Learner(Model(0, "", spec))


def _head_of(learner: Learner) -> ClassificationHead[SetLearner]:
    head = learner.heads["working_set"]
    assert isinstance(head, ClassificationHead)
    return head


def bound_of(asked: int | None, held: int) -> int:
    """Return the bound on a set: what was asked for, or room for as many samples again."""
    if held > LARGEST_SET:
        raise NoCounterpart(f"it holds {held:,} samples, a server's set at most {LARGEST_SET:,}")
    return min(max(DEFAULT_SET, 2 * held), LARGEST_SET) if asked is None else int(asked)


def with_state_of(
    estimator: SFWClassifier | SFWRegressor,
    learner: Learner,
    head: ClassificationHead[SetLearner] | RegressionHead,
    rows: Matrix,
) -> Learner:
    """Give a fresh model the state of an estimator's set. rows: the stored ones."""
    found = estimator.learner
    sparse = isinstance(rows, SparseRows)
    features = estimator.n_features_in_ if sparse else 0
    state = found.state()
    # Kernel values are computed again, which the estimator goes on from as well.
    found.restore({name: array.copy() for name, array in state.items()})
    head.learner.restore({"features": features}, state)
    head.calibration.restore(estimator.calibration.state())
    take_rows_of(estimator, learner, sparse=sparse)
    learner.sequence = found.seen
    return learner
