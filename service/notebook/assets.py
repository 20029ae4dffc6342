"""AssetClassifier and AssetRegressor as models of ASSET, and back."""

from typing import Any

from wolfstream.service.heads.asset import AssetLearner
from wolfstream.service.heads.classification import ClassificationHead
from wolfstream.service.heads.regression import RegressionHead
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
from wolfstream.service.spec.asset import AssetSpec
from wolfstream.service.spec.heads import HEADS
from wolfstream.service.spec.model import ModelSpec, read_spec
from wolfstream.solver.asset.features import takes_sparse
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.calibration.classes import ClassCalibration
from wolfstream.solver.calibration.values import ValueCalibration
from wolfstream.solver.estimators.asset import AssetEstimator
from wolfstream.solver.estimators.asset_classifier import AssetClassifier
from wolfstream.solver.estimators.asset_regressor import AssetRegressor


def learner_of_asset(estimator: AssetEstimator) -> Learner:
    """Return a model with the machines of an estimator. Raises NoCounterpart, Invalid."""
    found = estimator.learner
    labels = labels_of(estimator.classes_) if isinstance(estimator, AssetClassifier) else []
    given = getattr(estimator, "class_weight", None)
    weights = plain_weights(labels, found.class_weight, given)
    learner = Learner(Model(0, "", _spec_of(found, weights)))
    head = learner.heads["asset"]
    assert found.features is not None
    sparse = takes_sparse(found.features)
    features = estimator.n_features_in_ if sparse else 0
    if isinstance(head, ClassificationHead):
        head.meet(labels)
    solver_of(head).restore({"features": features}, found.state())
    calibration_of(head).restore(estimator.calibration.state())
    take_rows_of(estimator, learner, sparse=sparse)
    learner.sequence = found.steps
    return learner


def asset_of(learner: Learner) -> AssetClassifier | AssetRegressor:
    """An estimator with the machines of a model that has nothing else. Raises NoCounterpart."""
    spec, head = learner.model.spec, learner.heads["asset"]
    own, features = spec.asset, features_of(learner)
    assert own is not None
    check_settled(solver_of(head).frozen)
    found = solver_of(head).current
    estimator: AssetClassifier | AssetRegressor
    if isinstance(head, ClassificationHead):
        weights = weights_of(own.class_weight)
        estimator = AssetClassifier(**_parameters(spec, own, found), class_weight=weights)
        estimator.resume(found, classes_of(head.classes), features)
    else:
        estimator = AssetRegressor(**_parameters(spec, own, found), epsilon=own.epsilon or 0.0)
        estimator.resume(found, features)
    estimator.calibration.restore(calibration_of(head).state())
    name_columns(estimator, learner)
    return estimator


def calibration_of(head: object) -> ClassCalibration | ValueCalibration:
    """Return the calibration of a head of ASSET."""
    assert isinstance(head, ClassificationHead | RegressionHead)
    return head.calibration


def solver_of(head: object) -> AssetLearner:
    """Return the learner of a head of ASSET."""
    assert isinstance(head, ClassificationHead | RegressionHead)
    assert isinstance(head.learner, AssetLearner)
    return head.learner


def _spec_of(found: Asset, weights: list[dict[str, Any]]) -> ModelSpec:
    own = {
        name: found.parameters[name]
        for name in ("algorithm", "features", "dimension", "average", "average_from", "horizon")
    }
    own |= {"lambda": float(found.parameters["lam"]), "average": bool(own["average"])}
    own["class_weight"] = weights
    if own["features"] == "identity":
        own["dimension"] = None
    if found.regression:
        own["epsilon"] = float(found.parameters["epsilon"])
    return read_spec(
        {
            "task": found.parameters["task"],
            "kernel": plain_kernel(found.kernel),
            "prepare": None,
            **dict.fromkeys(HEADS),
            "asset": own,
            "serve": "asset",
            "seed": int(found.parameters["seed"]),
        }
    )


def _parameters(spec: ModelSpec, own: AssetSpec, found: Asset) -> dict[str, Any]:
    if own.horizon == "auto":
        raise NoCounterpart('its horizon is "auto", which the estimator has not')
    of_map = {} if own.dimension is None else {"dimension": own.dimension}
    return {
        "algorithm": own.algorithm,
        "features": own.features,
        **of_map,
        **kernel_parameters(spec.kernel, found.kernel),
        "lam": own.lam,
        "average": own.average,
        "average_from": own.average_from,
        "horizon": own.horizon,
        "random_state": spec.seed,
    }
