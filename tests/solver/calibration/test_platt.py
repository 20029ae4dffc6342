"""Probabilities of scores, against scikit-learn and plain minimisation."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.calibration import _sigmoid_calibration

from wolfstream.solver.calibration.platt import RIDGE, fit_scaling, probabilities


def decisions(seed, n, classes, slope=2.0):
    """Scores and labels that a scaling with this slope explains."""
    random = np.random.default_rng(seed)
    scores = random.standard_normal((n, classes))
    logits = slope * scores + np.linspace(-1.0, 1.0, classes)
    return scores, np.argmax(logits + random.gumbel(size=logits.shape), axis=1)


def penalised_loss(theta, scores, codes):
    """The formula of the module, in plain numpy."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    size = np.sqrt(np.mean(centred**2))
    logits = theta[0] * centred / size + theta[1:]
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    away = theta - np.eye(len(theta))[0]
    return -log_p[np.arange(len(codes)), codes].sum() + 0.5 * RIDGE * away @ away


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_the_scaling_minimises_the_penalised_loss(classes, unit):
    scores, codes = decisions(classes, 400, classes)
    found = fit_scaling(fit_scaling(None, unit * scores, codes), unit * scores, codes)
    centred = scores - scores.mean(axis=1, keepdims=True)
    theta = np.array([found.slope * unit * np.sqrt(np.mean(centred**2)), *found.offset])
    best = minimize(penalised_loss, np.eye(1 + classes)[0], args=(scores, codes), tol=1e-10)
    assert penalised_loss(theta, scores, codes) <= best.fun + 1e-3
    np.testing.assert_allclose(theta, best.x, atol=2e-2)


def test_two_classes_are_platts_sigmoid():
    random = np.random.default_rng(0)
    f = 3.0 * random.standard_normal(2000)
    codes = (random.random(2000) < 1.0 / (1.0 + np.exp(-(0.7 * f - 1.0)))).astype(np.int64)
    scores = np.stack([-0.5 * f, 0.5 * f], axis=1)
    found = probabilities(fit_scaling(fit_scaling(None, scores, codes), scores, codes), scores)
    a, b = _sigmoid_calibration(f, codes)
    np.testing.assert_allclose(found[:, 1], 1.0 / (1.0 + np.exp(a * f + b)), atol=0.01)


def test_scores_that_are_mostly_wrong_get_a_negative_slope():
    scores, codes = decisions(3, 500, 2, slope=-2.0)
    assert fit_scaling(None, scores, codes).slope < -1.0


def test_a_class_that_is_not_known_has_no_probability():
    scores, codes = decisions(4, 300, 3)
    scaling = fit_scaling(None, scores, codes)
    scores[0, 2] = np.nan
    scores[1] = np.nan
    found = probabilities(scaling, scores)
    assert found[0, 2] == 0.0
    np.testing.assert_allclose(found.sum(axis=1), [1.0, 0.0, *np.ones(298)])


@pytest.mark.parametrize("scores", [np.zeros((5, 2)), np.full((5, 2), 1e300), np.eye(2)[[0] * 5]])
def test_degenerate_decisions_give_probabilities(scores):
    codes = np.zeros(5, np.int64)
    found = probabilities(fit_scaling(None, scores, codes), scores)
    assert np.isfinite(found).all()
    assert (found[:, 0] >= 0.5).all()
