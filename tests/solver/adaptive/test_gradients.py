"""Gradients of a bank's answers, by central differences.

Neighbours are switched off: a difference may reach from one neighbour to the next.
"""

import numpy as np
import pytest

from tests.solver.differences import central
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.gradients import class_gradient, value_gradient
from wolfstream.solver.adaptive.inputs import as_sparse
from wolfstream.solver.adaptive.regressor import AdaptiveRegressor, predict_values
from wolfstream.solver.adaptive.settings import CLASSIFICATION, REGRESSION, Pins, pinned
from wolfstream.solver.adaptive.view import predict_classes

X = np.random.default_rng(0).standard_normal((200, 3))
NO_NEIGHBOURS = Pins(None, None, [])
AT = np.array([0.4, -0.7, 0.2])


def votes_of(shape, seed=1):
    return np.random.default_rng(seed).standard_normal((len(X), *shape))


@pytest.mark.parametrize("classes", [2, 4])
def test_gradients_of_log_odds(classes):
    codes = np.clip(np.floor(X[:, 0] * X[:, 1] + 1.0), 0, classes - 1).astype(np.int64)
    codes[:classes] = np.arange(classes)
    settings = pinned(CLASSIFICATION, NO_NEIGHBOURS)
    bank = AdaptiveClassifier(3, settings, external_experts=("one", "other"))
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
        found.row, central(lambda x: odds(x, told), AT), rtol=1e-5, atol=1e-8
    )
    # What is common to all classes of a vote counts nothing.
    of_first = central(lambda v: odds(AT, np.stack([v, told[1]])), told[0])
    np.testing.assert_allclose(found.votes[0], of_first, rtol=1e-5, atol=1e-8)
    assert (found.votes[1] == 0.0).all()


def test_unknown_class_has_the_voters_least_score():
    codes = np.arange(200) % 3
    bank = AdaptiveClassifier(3, pinned(CLASSIFICATION, NO_NEIGHBOURS), external_experts=("one",))
    bank.absorb(X, codes, votes_of((1, 3)))
    view, told = bank.view(), np.array([[0.5, -0.3, np.nan]])

    def odds(vote):
        votes = np.array([[[vote[0], vote[1], np.nan]]])
        p = predict_classes(view, AT[None], votes).probability[0]
        return np.log(p[2] / p[0])

    found = class_gradient(view, AT, np.array([-1.0, 0.0, 1.0]), told).votes[0]
    np.testing.assert_allclose(found[:2], central(odds, told[0, :2]), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("temporal", [False, True])
def test_gradients_of_values(temporal, skewed):
    bank = AdaptiveRegressor(
        3, pinned(REGRESSION, NO_NEIGHBOURS), external_experts=("one", "other"), temporal=temporal
    )
    y = 100.0 * np.exp(np.sin(X[:, 0]) + X[:, 1]) if skewed else 100.0 + 20.0 * np.sin(X[:, 0])
    bank.absorb(X, y, 100.0 + 10.0 * votes_of((2,)))
    view, told = bank.view(), np.array([104.0, np.nan])
    assert bool(view.units.bend) == skewed

    def value(x, votes):
        return predict_values(view, x[None], votes[None]).prediction[0]

    found = value_gradient(view, AT, told)
    expected = central(lambda x: value(x, told), AT)
    np.testing.assert_allclose(found.row, expected, rtol=1e-5, atol=1e-6)
    of_first = central(lambda v: value(AT, np.array([v[0], np.nan])), told[:1], 1e-3)
    np.testing.assert_allclose(found.votes, [of_first[0], 0.0], rtol=1e-5, atol=1e-9)


WIDE = np.random.default_rng(3).standard_normal((80, 300))
WIDE[:, 200:] *= np.random.default_rng(4).random((80, 100)) < 0.3
# Columns of their own and hashed ones, there and absent.
COLUMNS = [0, 5, 127, 128, 250, 299]
WIDE_AT = 0.7 * WIDE[7]
WIDE_AT[[5, 250]] = 0.0


def moved(steps):
    """A wide row whose COLUMNS are moved by so much."""
    x = WIDE_AT.copy()
    x[COLUMNS] += steps
    return x


def sparse_rows(X):
    return as_sparse(np.atleast_2d(X))


@pytest.mark.parametrize("rows", [np.atleast_2d, sparse_rows])
def test_gradients_of_log_odds_in_wide_rows(rows):
    columns = None if rows is sparse_rows else 300
    bank = AdaptiveClassifier(columns, pinned(CLASSIFICATION, NO_NEIGHBOURS))
    bank.absorb(rows(WIDE), (WIDE[:, 0] + WIDE[:, 250] > 0.0).astype(np.int64))
    view = bank.view()

    def odds(steps):
        p = predict_classes(view, rows(moved(steps))).probability[0]
        return np.log(p[1] / p[0])

    found = class_gradient(view, WIDE_AT, np.array([-1.0, 1.0]), None).row[COLUMNS]
    assert (found != 0.0).all()
    expected = central(odds, np.zeros(len(COLUMNS)))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("temporal", [False, True])
def test_gradients_of_values_in_wide_rows(temporal):
    bank = AdaptiveRegressor(300, pinned(REGRESSION, NO_NEIGHBOURS), temporal=temporal)
    bank.absorb(WIDE, 5.0 + WIDE[:, 0] + WIDE[:, 250])
    view = bank.view()

    def value(steps):
        return predict_values(view, moved(steps)[None]).prediction[0]

    found = value_gradient(view, WIDE_AT, None).row
    expected = central(value, np.zeros(len(COLUMNS)))
    np.testing.assert_allclose(found[COLUMNS], expected, rtol=1e-5, atol=1e-8)


def test_a_column_that_was_never_met_moves_the_hashed_ones_alone():
    bank = AdaptiveClassifier(None, pinned(CLASSIFICATION, NO_NEIGHBOURS))
    bank.absorb(as_sparse(WIDE), (WIDE[:, 0] > 0.0).astype(np.int64))
    view, x = bank.view(), np.concatenate([WIDE_AT, [0.5, 0.0]])
    found = class_gradient(view, x, np.array([-1.0, 1.0]), None).row[[300, 301]]

    def odds(steps):
        moved_on = x.copy()
        moved_on[300] += steps[0]
        p = predict_classes(view, as_sparse(moved_on[None])).probability[0]
        return np.log(p[1] / p[0])

    np.testing.assert_allclose(found[:1], central(odds, np.zeros(1)), rtol=1e-5, atol=1e-8)
    assert np.isfinite(found).all()
