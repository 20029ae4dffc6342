"""Converts SFWClassifier, SFWRegressor and FrankWolfeClassifier to models, and back."""

from typing import Any

import numpy as np

from wolfstream.service.heads.classification import ClassificationHead
from wolfstream.service.heads.regression import RegressionHead
from wolfstream.service.heads.regression_set import RegressionSetLearner
from wolfstream.service.heads.working_set import SetLearner
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.offline.conversion import (
    NoCounterpart,
    check_width_settled,
    classes_of,
    copy_row_form,
    kernel_parameters,
    labels_of,
    n_features_of,
    name_columns,
    plain_kernel,
    plain_weights,
    weights_of,
)
from wolfstream.service.spec.heads import DEFAULT_SET, HEADS, LARGEST_SET, TaskName
from wolfstream.service.spec.model import read_spec
from wolfstream.solver.estimators.base import as_matrix
from wolfstream.solver.estimators.frank_wolfe_classifier import FrankWolfeClassifier
from wolfstream.solver.estimators.sfw_classifier import SFWClassifier
from wolfstream.solver.estimators.sfw_regressor import SFWRegressor
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import Matrix, SparseRows


def regression_set_to_learner(estimator: SFWRegressor) -> Learner:
    """Return a model with the working set of an estimator. Raises NoCounterpart, Invalid."""
    solver = estimator.learner
    fields = {
        "algorithm": "msfw" if solver.rule.away_steps else "sfw",
        "C": float(solver.C),
        "epsilon": solver.rule.epsilon,
        "corrective_steps": int(solver.rule.corrective_steps),
        "max_size": set_bound(solver.bounds.max_size, solver.set.store.size),
        "gram_bytes_max": int(solver.bounds.gram_bytes),
    }
    learner = empty_model(solver.kernel, fields, task="regression")
    head = learner.heads["working_set"]
    assert isinstance(head, RegressionHead)
    if solver_of(head).current.set.precision != solver.set.precision:
        raise NoCounterpart("C times a weight of its samples is more than a server's set may have")
    return copy_state(estimator, learner, head, solver.set.store.rows.exact)


def learner_to_regression_set(learner: Learner) -> SFWRegressor:
    """Return an estimator with the working set of a model that has no other head.

    Raises NoCounterpart.
    """
    spec, head = learner.model.spec, learner.heads["working_set"]
    assert isinstance(head, RegressionHead)
    set_spec, n_features = spec.working_set, n_features_of(learner)
    assert set_spec is not None
    assert set_spec.epsilon is not None
    check_width_settled(solver_of(head).frozen)
    solver = solver_of(head).current
    estimator = SFWRegressor(
        set_spec.algorithm,
        C=set_spec.C,
        epsilon=set_spec.epsilon,
        **kernel_parameters(spec.kernel, solver.kernel),
        corrective_steps=set_spec.corrective_steps,
        max_size=set_spec.max_size,
        gram_bytes_max=set_spec.gram_bytes_max,
    )
    estimator.resume(solver, n_features)
    estimator.calibration.restore(head.calibration.state())
    name_columns(estimator, learner)
    return estimator


def solver_of(head: RegressionHead) -> RegressionSetLearner:
    """Return the learner of a head with a working set for regression."""
    assert isinstance(head.learner, RegressionSetLearner)
    return head.learner


def set_to_learner(estimator: SFWClassifier) -> Learner:
    """Return a model with the working set of an estimator. Raises NoCounterpart, Invalid."""
    solver, labels = estimator.learner, labels_of(estimator.classes_)
    fields = {
        "algorithm": solver.algorithm,
        "C": float(solver.ridges.C),
        "corrective_steps": int(solver.corrective_steps),
        "max_size": set_bound(solver.max_size, solver.store.size),
        "class_weight": plain_weights(labels, solver.ridges.class_weight, estimator.class_weight),
        "scores": "coupled" if solver.coupled else "counted",
    }
    learner = empty_model(solver.kernel, fields)
    head = _head_of(learner)
    head.meet(labels)
    if head.learner.current.precision != solver.precision:
        raise NoCounterpart("C times a weight of its samples is more than a server's set may have")
    return copy_state(estimator, learner, head, solver.store.rows.exact)


def solution_to_learner(estimator: FrankWolfeClassifier) -> Learner:
    """Return a model with the solution of an estimator, which MSFW continues.

    Its sequence is the number of support vectors.

    Raises NoCounterpart, Invalid, NotFittedError.
    """
    labels, alpha = labels_of(estimator.classes_), np.abs(estimator.dual_coef_)
    if isinstance(estimator.class_weight, str):
        raise NoCounterpart(
            f"class_weight={estimator.class_weight!r} says no weights: fit with a dict of them"
        )
    fields = {
        "C": float(estimator.C),
        "max_size": set_bound(None, alpha.shape[1]),
        "class_weight": plain_weights([], [], estimator.class_weight),
    }
    degree, coef0 = int(estimator.degree), float(estimator.coef0)
    kernel = Kernel(estimator.kernel, float(estimator.gamma_), degree, coef0)  # type: ignore[arg-type]
    learner = empty_model(kernel, fields)
    head = _head_of(learner)
    head.meet(labels)
    X = as_matrix(estimator.support_vectors_)
    codes = np.searchsorted(estimator.classes_, estimator.support_labels_)
    head.learner.current.adopt(X, codes.astype(np.int64), alpha)
    copy_row_form(estimator, learner, sparse=isinstance(X, SparseRows))
    learner.sequence = alpha.shape[1]
    return learner


def learner_to_set(learner: Learner) -> SFWClassifier:
    """Return an estimator with the working set of a model that has no other head.

    Raises NoCounterpart.
    """
    spec, head = learner.model.spec, learner.heads["working_set"]
    assert isinstance(head, ClassificationHead)
    set_spec, n_features = spec.working_set, n_features_of(learner)
    assert set_spec is not None
    if set_spec.horizon is not None:
        raise NoCounterpart("its samples lose weight with age: the estimator has no horizon")
    check_width_settled(head.learner.frozen)
    solver = head.learner.current
    estimator = SFWClassifier(
        set_spec.algorithm,
        C=set_spec.C,
        **kernel_parameters(spec.kernel, solver.kernel),
        corrective_steps=set_spec.corrective_steps,
        max_size=set_spec.max_size,
        class_weight=weights_of(set_spec.class_weight),
    )
    estimator.resume(solver, classes_of(head.classes), n_features)
    estimator.calibration.restore(head.calibration.state())
    name_columns(estimator, learner)
    return estimator


def empty_model(
    kernel: Kernel, fields: dict[str, Any], task: TaskName = "classification"
) -> Learner:
    """Return a new model whose only head is a working set.

    Args:
        kernel: the set's kernel.
        fields: the part `working_set` of the spec.
        task: the model's task.

    Raises Invalid.
    """
    spec = read_spec(
        {
            "task": task,
            "kernel": plain_kernel(kernel),
            "prepare": None,
            **dict.fromkeys(HEADS),
            "working_set": fields,
            "serve": "working_set",
        }
    )
    return Learner(Model(0, "", spec))


def _head_of(learner: Learner) -> ClassificationHead[SetLearner]:
    head = learner.heads["working_set"]
    assert isinstance(head, ClassificationHead)
    return head


def set_bound(max_size: int | None, size: int) -> int:
    """Return the bound on a set: `max_size`, or by default twice its present size.

    Raises NoCounterpart.
    """
    if size > LARGEST_SET:
        raise NoCounterpart(f"it holds {size:,} samples, a server's set at most {LARGEST_SET:,}")
    return min(max(DEFAULT_SET, 2 * size), LARGEST_SET) if max_size is None else int(max_size)


def copy_state(
    estimator: SFWClassifier | SFWRegressor,
    learner: Learner,
    head: ClassificationHead[SetLearner] | RegressionHead,
    rows: Matrix,
) -> Learner:
    """Give a new model the state of an estimator's set; return the model.

    Args:
        estimator: the estimator with the set.
        learner: the new model.
        head: the model's only head.
        rows: the samples that the set stores.
    """
    solver = estimator.learner
    sparse = isinstance(rows, SparseRows)
    n_features = estimator.n_features_in_ if sparse else 0
    state = solver.state()
    # Restoring computes the kernel values again. The estimator is restored as well, so that it
    # continues from the same bits as the model.
    solver.restore({name: array.copy() for name, array in state.items()})
    head.learner.restore({"features": n_features}, state)
    head.calibration.restore(estimator.calibration.state())
    copy_row_form(estimator, learner, sparse=sparse)
    learner.sequence = solver.seen
    return learner
