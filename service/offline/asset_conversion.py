"""Converts AssetClassifier and AssetRegressor to models of ASSET, and back."""

from typing import Any

from wolfstream.service.heads.asset import AssetLearner
from wolfstream.service.heads.classification import ClassificationHead
from wolfstream.service.heads.regression import RegressionHead
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


def asset_to_learner(estimator: AssetEstimator) -> Learner:
    """Return a model with the state of an estimator. Raises NoCounterpart, Invalid."""
    asset = estimator.learner
    labels = labels_of(estimator.classes_) if isinstance(estimator, AssetClassifier) else []
    class_weight = getattr(estimator, "class_weight", None)
    weights = plain_weights(labels, asset.class_weight, class_weight)
    learner = Learner(Model(0, "", _spec_of(asset, weights)))
    head = learner.heads["asset"]
    assert asset.features is not None
    sparse = takes_sparse(asset.features)
    n_features = estimator.n_features_in_ if sparse else 0
    if isinstance(head, ClassificationHead):
        head.meet(labels)
    solver_of(head).restore({"features": n_features}, asset.state())
    calibration_of(head).restore(estimator.calibration.state())
    copy_row_form(estimator, learner, sparse=sparse)
    learner.sequence = asset.steps
    return learner


def learner_to_asset(learner: Learner) -> AssetClassifier | AssetRegressor:
    """Return an estimator with the state of a model whose only head is ASSET.

    Raises NoCounterpart.
    """
    spec, head = learner.model.spec, learner.heads["asset"]
    asset_spec, n_features = spec.asset, n_features_of(learner)
    assert asset_spec is not None
    check_width_settled(solver_of(head).frozen)
    asset = solver_of(head).current
    parameters = _parameters(spec, asset_spec, asset)
    estimator: AssetClassifier | AssetRegressor
    if isinstance(head, ClassificationHead):
        weights = weights_of(asset_spec.class_weight)
        estimator = AssetClassifier(**parameters, class_weight=weights)
        estimator.resume(asset, classes_of(head.classes), n_features)
    else:
        estimator = AssetRegressor(**parameters, epsilon=asset_spec.epsilon or 0.0)
        estimator.resume(asset, n_features)
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


def _spec_of(asset: Asset, weights: list[dict[str, Any]]) -> ModelSpec:
    parameters = asset.parameters
    fields = {
        name: parameters[name]
        for name in ("algorithm", "features", "dimension", "average", "average_from", "horizon")
    }
    fields |= {"lambda": float(parameters["lam"]), "average": bool(parameters["average"])}
    fields["class_weight"] = weights
    if fields["features"] == "identity":
        fields["dimension"] = None
    if asset.regression:
        fields["epsilon"] = float(parameters["epsilon"])
    return read_spec(
        {
            "task": parameters["task"],
            "kernel": plain_kernel(asset.kernel),
            "prepare": None,
            **dict.fromkeys(HEADS),
            "asset": fields,
            "serve": "asset",
            "seed": int(parameters["seed"]),
        }
    )


def _parameters(spec: ModelSpec, asset_spec: AssetSpec, asset: Asset) -> dict[str, Any]:
    """Return the parameters that both estimators have. Raises NoCounterpart."""
    if asset_spec.horizon == "auto":
        raise NoCounterpart('its horizon is "auto", which the estimator does not support')
    dimension = {} if asset_spec.dimension is None else {"dimension": asset_spec.dimension}
    return {
        "algorithm": asset_spec.algorithm,
        "features": asset_spec.features,
        **dimension,
        **kernel_parameters(spec.kernel, asset.kernel),
        "lam": asset_spec.lam,
        "average": asset_spec.average,
        "average_from": asset_spec.average_from,
        "horizon": asset_spec.horizon,
        "random_state": spec.seed,
    }
