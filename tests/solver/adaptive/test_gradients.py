"""Gradients of a bank's answers, by central differences.

Neighbours are switched off: a difference may reach from one neighbour to the next.
"""

import numpy as np
import pytest

from solver.adaptive.classifier import AdaptiveClassifier
from solver.adaptive.gradients import class_gradient, value_gradient
from solver.adaptive.regressor import AdaptiveRegressor, predict_values
from solver.adaptive.settings import CLASSIFICATION, REGRESSION, Pins, pinned
from solver.adaptive.view import predict_classes
from tests.solver.differences import central

X = np.random.default_rng(0).standard_normal((200, 3))
NO_NEIGHBOURS = Pins(None, None, [])
AT = np.array([0.4, -0.7, 0.2])


def votes_of(shape, seed=1):
    return np.random.default_rng(seed).standard_normal((len(X), *shape))


@pytest.mark.parametrize("temporal", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_gradients_of_log_odds(classes, temporal):
    codes = np.clip(np.floor(X[:, 0] * X[:, 1] + 1.0), 0, classes - 1).astype(np.int64)
    codes[:classes] = np.arange(classes)
    bank = AdaptiveClassifier(
        3,
        pinned(CLASSIFICATION, NO_NEIGHBOURS),
        external_experts=("one", "other"),
        temporal=temporal,
    )
    bank.absorb(X, codes, votes_of((2, classes)))
    view, told = bank.view(), np.random.default_rng(2).standard_normal((2, classes))
    told[1] = np.nan

    def odds(x, votes):
        p = predict_classes(view, x[None], votes[None]).probability[0]
        return np.log(p[1] / p[0])

    direction = np.zeros(classes)
    direction[:2] = -1.0, 1.0
    found = class_gradient(view, AT, direction, told)
    np.testing.assert_allclose(
        found.of_row, central(lambda x: odds(x, told), AT), rtol=1e-5, atol=1e-8
    )
    # What is common to all classes of a vote counts nothing.
    of_first = central(lambda v: odds(AT, np.stack([v, told[1]])), told[0])
    np.testing.assert_allclose(found.of_votes[0], of_first, rtol=1e-5, atol=1e-8)
    assert (found.of_votes[1] == 0.0).all()


def test_a_class_that_a_voter_does_not_know_stands_for_its_least():
    codes = np.arange(200) % 3
    bank = AdaptiveClassifier(3, pinned(CLASSIFICATION, NO_NEIGHBOURS), external_experts=("one",))
    bank.absorb(X, codes, votes_of((1, 3)))
    view, told = bank.view(), np.array([[0.5, -0.3, np.nan]])

    def odds(vote):
        votes = np.array([[[vote[0], vote[1], np.nan]]])
        p = predict_classes(view, AT[None], votes).probability[0]
        return np.log(p[2] / p[0])

    found = class_gradient(view, AT, np.array([-1.0, 0.0, 1.0]), told).of_votes[0]
    np.testing.assert_allclose(found[:2], central(odds, told[0, :2]), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("temporal", [False, True])
def test_gradients_of_values(temporal):
    bank = AdaptiveRegressor(
        3, pinned(REGRESSION, NO_NEIGHBOURS), external_experts=("one", "other"), temporal=temporal
    )
    y = 100.0 + 20.0 * np.sin(X[:, 0])
    bank.absorb(X, y, 100.0 + 10.0 * votes_of((2,)))
    view, told = bank.view(), np.array([104.0, np.nan])

    def value(x, votes):
        return predict_values(view, x[None], votes[None]).prediction[0]

    found = value_gradient(view, AT, told)
    expected = central(lambda x: value(x, told), AT)
    np.testing.assert_allclose(found.of_row, expected, rtol=1e-5, atol=1e-7)
    of_first = central(lambda v: value(AT, np.array([v[0], np.nan])), told[:1], 1e-3)
    np.testing.assert_allclose(found.of_votes, [of_first[0], 0.0], rtol=1e-5, atol=1e-9)


def test_rows_that_are_hashed_have_none():
    wide = AdaptiveClassifier(300)
    wide.absorb(np.random.default_rng(0).standard_normal((40, 300)), np.arange(40) % 2)
    with pytest.raises(TypeError, match="hashed"):
        class_gradient(wide.view(), np.zeros(300), np.array([-1.0, 1.0]), None)
