"""Probabilities, sets, intervals and reasons of estimators."""

import pickle

import numpy as np
import pytest

from tests.solver.differences import central
from tests.solver.streams import clusters
from wolfstream.solver.estimators.asset_classifier import AssetClassifier
from wolfstream.solver.estimators.asset_regressor import AssetRegressor
from wolfstream.solver.estimators.sfw_classifier import SFWClassifier
from wolfstream.solver.estimators.sfw_regressor import SFWRegressor
from wolfstream.solver.estimators.stream_classifier import StreamClassifier
from wolfstream.solver.estimators.stream_regressor import StreamRegressor

X, CODES = clusters(0, 600, 3, 3, noise=0.2)
Y = np.array(["a", "b", "c"])[CODES]
TARGETS = 50.0 + 3.0 * X[:, 0] + np.random.default_rng(1).standard_normal(len(X))
CLASSIFIERS = [
    SFWClassifier(),
    AssetClassifier(features="fourier", dimension=64, random_state=0),
]
REGRESSORS = [SFWRegressor(), AssetRegressor(features="fourier", dimension=64, random_state=0)]


def taught(estimator, y):
    for start in range(0, 400, 50):
        estimator.partial_fit(X[start : start + 50], y[start : start + 50])
    return estimator


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda one: type(one).__name__)
def test_classifiers_are_calibrated_by_partial_fit_alone(estimator):
    assert not hasattr(estimator.fit(X[:100], Y[:100]), "predict_proba")
    with pytest.raises(AttributeError) as refused:
        estimator.predict_set(X)
    assert "partial_fit" in str(refused.value.__cause__)
    model = taught(type(estimator)(**estimator.get_params()), Y)
    p = model.predict_proba(X[400:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(X[400:]), p)
    inside = model.predict_set(X[400:], confidence=0.9)
    covered = inside[np.arange(200), np.searchsorted(model.classes_, Y[400:])]
    assert 0.8 < covered.mean() <= 1.0
    assert inside[np.arange(200), p.argmax(axis=1)].all()


@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda one: type(one).__name__)
def test_regressors_have_intervals_by_partial_fit_alone(estimator):
    assert not hasattr(estimator.fit(X[:100], TARGETS[:100]), "predict_interval")
    model = taught(type(estimator)(**estimator.get_params()), TARGETS)
    low, high = model.predict_interval(X[400:], confidence=0.8).T
    assert 0.6 < ((low <= TARGETS[400:]) & (TARGETS[400:] <= high)).mean() <= 1.0
    np.testing.assert_allclose(0.5 * (low + high), model.predict(X[400:]))


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1, "0.9", np.nan, None])
def test_a_confidence_lies_between_0_and_1(confidence):
    with pytest.raises(ValueError, match="confidence"):
        taught(StreamClassifier(), Y).predict_set(X[:2], confidence)


def test_streams_have_sets_and_intervals():
    inside = taught(StreamClassifier(), Y).predict_set(X[400:], 0.9)
    assert 0.8 < inside[np.arange(200), CODES[400:]].mean() <= 1.0
    low, high = taught(StreamRegressor(), TARGETS).predict_interval(X[400:], 0.9).T
    assert 0.8 < ((low <= TARGETS[400:]) & (TARGETS[400:] <= high)).mean() <= 1.0


def test_a_stream_explains_a_label_by_features_and_members():
    model = taught(StreamClassifier(), Y)
    (found,) = model.explain(X[400:401], most=3)
    place = {label: k for k, label in enumerate(model.classes_.tolist())}

    def odds(x):
        p = model.predict_proba(x[None])[0]
        return np.log(p[place[found["for"]]] / p[place[found["against"]]])

    assert found["for"] == model.predict(X[400:401])[0]
    assert found["log_odds"] == pytest.approx(odds(X[400]), abs=1e-9)
    expected = central(odds, X[400], 1e-4)
    for one in found["gradient"]:
        # Neighbours may change within a step, which the gradient does not see.
        assert one["gradient"] == pytest.approx(expected[one["feature"]], rel=0.05, abs=0.01)
    for one in found["members"]["for"] + found["members"]["against"]:
        assert one["label"] == Y[one["sequence"] - 1]
        assert one["pull"] == pytest.approx(one["weight"] * one["kernel"])


def test_a_stream_explains_a_value():
    model = taught(StreamRegressor(), TARGETS)
    (found,) = model.explain(X[400:401], most=2)
    expected = central(lambda x: model.predict(x[None])[0], X[400], 1e-4)
    assert len(found) == 2
    assert found[0]["feature"] == 0
    assert found[0]["gradient"] == pytest.approx(expected[0], rel=0.05)


def test_wide_rows_are_explained():
    wide = np.random.default_rng(0).standard_normal((200, 300))
    model = StreamClassifier().fit(wide, (wide[:, 280] > 0.0).astype(int))
    assert 280 in [one["feature"] for one in model.explain(wide[:1], most=3)[0]["gradient"]]
