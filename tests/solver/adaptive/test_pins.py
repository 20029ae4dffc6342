"""Learners that are pinned or switched off."""

import numpy as np
import pytest

from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.features import FeatureMap
from wolfstream.solver.adaptive.learners import Learners
from wolfstream.solver.adaptive.regressor import AdaptiveRegressor, predict_values
from wolfstream.solver.adaptive.settings import CLASSIFICATION, FOREVER, REGRESSION, Pins, pinned
from wolfstream.solver.adaptive.view import predict_classes
from wolfstream.solver.rows.matrix import sparse_from_csr

ONE_HORIZON = Pins(horizons=[500.0], steps=[], neighbours=[], naive_bayes=[])
CASES = [
    ONE_HORIZON,
    Pins(horizons=[FOREVER], steps=[]),
    Pins(horizons=[], steps=[0.1, 0.5], neighbours=[7, 3]),
    Pins(horizons=[FOREVER, 100.0], neighbours=[]),
]


def rows(n, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, 3))
    return X, (X[:, 0] + X[:, 1] > 0.0).astype(np.int64)


def kinds_of(settings):
    features = FeatureMap(np.ones((3, 0)))
    return Learners(settings, features, wide=False, texts=0, regression=False).kinds


def test_without_pins_the_defaults_are_left():
    assert pinned(CLASSIFICATION, Pins()) == CLASSIFICATION
    assert pinned(REGRESSION, Pins()) == REGRESSION


def test_a_pin_takes_the_place_of_its_part_on_every_span():
    kinds = kinds_of(pinned(CLASSIFICATION, ONE_HORIZON))
    assert {kind["learner"] for kind in kinds} == {"ridge"}
    assert {kind["horizon"] for kind in kinds} == {500.0}
    assert {kind["features"] for kind in kinds} == {"all", "linear"}
    assert len(kinds) == 6  # with three losses each


def test_a_horizon_of_the_defaults_keeps_its_prior():
    (ridge, _) = pinned(REGRESSION, Pins(horizons=[1000.0])).ridge
    assert ridge in REGRESSION.ridge


def test_neighbours_are_in_ascending_order():
    assert pinned(REGRESSION, Pins(neighbours=[9, 2, 5])).neighbours == (2, 5, 9)


@pytest.mark.parametrize("pins", CASES)
def test_classes_are_learned_with_what_is_left(pins):
    X, y = rows(700)
    learner = AdaptiveClassifier(3, pinned(CLASSIFICATION, pins))
    learner.absorb(X[:600], y[:600])
    said = predict_classes(learner.view(), X[600:])
    assert np.mean(said.prediction == y[600:]) > 0.9
    again = AdaptiveClassifier(3, pinned(CLASSIFICATION, pins))
    again.restore(learner.state())
    for each in (learner, again):
        each.absorb(X[600:], y[600:])
    told = [predict_classes(each.view(), X).probability for each in (learner, again)]
    np.testing.assert_array_equal(*told)


@pytest.mark.parametrize("pins", CASES)
def test_numbers_are_learned_with_what_is_left(pins):
    X, _ = rows(700)
    y = 1e3 * X[:, 0] + 1e5
    learner = AdaptiveRegressor(3, pinned(REGRESSION, pins))
    learner.absorb(X[:600], y[:600])
    errors = predict_values(learner.view(), X[600:]).prediction - y[600:]
    assert np.sqrt(np.mean(errors**2)) < 150.0


@pytest.mark.parametrize("pins", CASES)
def test_sparse_rows_are_learned_with_what_is_left(pins):
    X, y = rows(600)
    columns = np.tile(np.arange(3), 600)
    sparse = sparse_from_csr(X.ravel(), columns, np.arange(0, 1801, 3), 3)
    learner = AdaptiveClassifier(None, pinned(CLASSIFICATION, pins))
    answers = learner.absorb(sparse, y)
    assert np.mean(answers.prediction[300:] == y[300:]) > 0.85


def test_classes_that_change_places_are_followed_without_neighbours():
    X, y = rows(1500)
    y[1000:] = 1 - y[1000:]
    learner = AdaptiveClassifier(3, pinned(CLASSIFICATION, Pins(neighbours=[])))
    answers = learner.absorb(X, y)
    assert np.mean(answers.prediction[1300:] == y[1300:]) > 0.9
