"""Converts SFWRegressor to a model with a working set for regression, and back."""

from wolfstream.service.heads.regression import RegressionHead
from wolfstream.service.heads.regression_set import RegressionSetLearner
from wolfstream.service.model.learner import Learner
from wolfstream.service.notebook.kernels import kernel_parameters
from wolfstream.service.notebook.rows import (
    NoCounterpart,
    check_width_settled,
    n_features_of,
    name_columns,
)
from wolfstream.service.notebook.working_sets import copy_state, empty_model, set_bound
from wolfstream.solver.estimators.sfw_regressor import SFWRegressor


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
