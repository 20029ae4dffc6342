"""SFWRegressor as a model of a working set of numbers, and back."""

from wolfstream.service.heads.regression import RegressionHead
from wolfstream.service.heads.regression_set import RegressionSetLearner
from wolfstream.service.model.learner import Learner
from wolfstream.service.notebook.kernels import kernel_parameters
from wolfstream.service.notebook.rows import (
    NoCounterpart,
    check_settled,
    features_of,
    name_columns,
)
from wolfstream.service.notebook.working_sets import bound_of, empty_model, with_state_of
from wolfstream.solver.estimators.sfw_regressor import SFWRegressor


def learner_of_values(estimator: SFWRegressor) -> Learner:
    """Return a model with the working set of an estimator. Raises NoCounterpart, Invalid."""
    found = estimator.learner
    own = {
        "algorithm": "msfw" if found.rule.away_steps else "sfw",
        "C": float(found.C),
        "epsilon": found.rule.epsilon,
        "corrective_steps": int(found.rule.corrective_steps),
        "max_size": bound_of(found.bounds.max_size, found.set.store.size),
        "gram_bytes_max": int(found.bounds.gram_bytes),
    }
    learner = empty_model(found.kernel, own, task="regression")
    head = learner.heads["working_set"]
    assert isinstance(head, RegressionHead)
    if solver_of(head).current.set.precision != found.set.precision:
        raise NoCounterpart("C times a weight of its samples is more than a server's set may have")
    return with_state_of(estimator, learner, head, found.set.store.rows.exact)


def values_of(learner: Learner) -> SFWRegressor:
    """An estimator with the working set of a model that has nothing else. Raises NoCounterpart."""
    spec, head = learner.model.spec, learner.heads["working_set"]
    assert isinstance(head, RegressionHead)
    own, features = spec.working_set, features_of(learner)
    assert own is not None
    assert own.epsilon is not None
    check_settled(solver_of(head).frozen)
    found = solver_of(head).current
    estimator = SFWRegressor(
        own.algorithm,
        C=own.C,
        epsilon=own.epsilon,
        **kernel_parameters(spec.kernel, found.kernel),
        corrective_steps=own.corrective_steps,
        max_size=own.max_size,
        gram_bytes_max=own.gram_bytes_max,
    )
    estimator.resume(found, features)
    estimator.calibration.restore(head.calibration.state())
    name_columns(estimator, learner)
    return estimator


def solver_of(head: RegressionHead) -> RegressionSetLearner:
    """Return the learner of a head of a working set of numbers."""
    assert isinstance(head.learner, RegressionSetLearner)
    return head.learner
