"""FrankWolfeRegressor: accuracy, the tube and its width, scales of y, what its attributes mean."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.solver.oracle_sfw import kernel_matrix
from wolfstream import FrankWolfeRegressor
from wolfstream.solver.kernels.functions import Kernel


def noisy_sinc(seed, n, noise=0.05):
    random = np.random.default_rng(seed)
    X = random.uniform(-3.0, 3.0, (n, 1))
    return X, np.sinc(X[:, 0]) + noise * random.standard_normal(n)


def made(**parameters):
    return FrankWolfeRegressor(**({"gamma": 1.0, "random_state": 0} | parameters))


def test_a_noisy_sinc_is_found():
    model = made(C=100.0, gamma=3.0).fit(*noisy_sinc(0, 300))
    assert model.score(*noisy_sinc(1, 300)) > 0.95


def test_predictions_are_the_sum_over_support_vectors():
    X, y = noisy_sinc(0, 80)
    model = made().fit(X[:60], y[:60])
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    K = kernel_matrix(Kernel("rbf", model.gamma_), X, model.support_vectors_)
    by_hand = K @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.predict(X), by_hand, atol=1e-9)
    assert model.dual_coef_.shape == (1, len(model.support_))
    assert model.intercept_[0] == pytest.approx(model.dual_coef_.sum() + y[:60].mean(), abs=1e-9)


def test_the_dual_is_stated_on_the_simplex_and_certified():
    """alpha from dual_coef_ where no sample is used from both sides; f, gap from the matrix."""
    X, y = noisy_sinc(2, 50)
    C, mu, n = 50.0, 0.3, 50
    model = made(C=C, mu=mu, kernel="polynomial", degree=2, gamma=0.5, tol=1e-8).fit(X, y)
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0] / (C * y.std())
    alpha = np.maximum(np.concatenate([beta, -beta]), 0.0)
    assert alpha.sum() == pytest.approx(1.0, abs=1e-9)
    s = np.repeat([1.0, -1.0], n)
    K = kernel_matrix(Kernel("polynomial", 0.5, 2, 1.0), X, X) + 1.0
    A = np.outer(s, s) * np.tile(K, (2, 2)) + mu * n / C * np.eye(2 * n)
    c = 2.0 / C * s * np.tile((y - y.mean()) / y.std(), 2)
    gradient = -2.0 * A @ alpha + c
    assert model.objective_ == pytest.approx(c @ alpha - alpha @ A @ alpha, abs=1e-9)
    assert gradient.max() - alpha @ gradient == pytest.approx(model.gap_, abs=1e-9)
    assert model.gap_ <= 1e-8


def test_the_tube_narrows_as_deviations_become_cheap():
    """epsilon falls with mu, and from mu = 1 on the tube is empty."""
    X, y = noisy_sinc(3, 100, noise=0.2)
    epsilon = [made(C=10.0, mu=mu).fit(X, y).epsilon_ for mu in (0.01, 0.03, 0.1, 1.0, 2.0)]
    assert np.all(np.diff(epsilon[:4]) < 0.0)
    assert epsilon[0] > 0.2
    np.testing.assert_allclose(epsilon[3:], 0.0, atol=0.01)


def test_samples_inside_the_tube_have_no_weight():
    X, y = noisy_sinc(4, 100, noise=0.2)
    model = made(C=10.0, tol=1e-10).fit(X, y)
    deviation = np.abs(y - model.predict(X))
    inside = deviation < model.epsilon_ - 1e-3
    assert inside.sum() > 20
    assert not np.isin(np.flatnonzero(inside), model.support_).any()
    # Whatever is outside pulls: s (y - h) = epsilon + mu n alpha, alpha = |dual_coef| / C.
    pull = np.abs(model.dual_coef_[0]) * model.mu * len(y) / model.C
    np.testing.assert_allclose(deviation[model.support_], model.epsilon_ + pull, atol=1e-3)


@pytest.mark.parametrize("scale", [1000.0, 1e-200, 1e80])
def test_the_scale_and_the_offset_of_y_do_not_matter(scale):
    X, y = noisy_sinc(5, 60)
    model, other = made(C=10.0, tol=1e-8).fit(X, y), made(C=10.0, tol=1e-8)
    other.fit(X, scale * (y + 0.005))
    np.testing.assert_allclose(other.predict(X) / scale - 0.005, model.predict(X), atol=1e-4)
    assert other.epsilon_ / scale == pytest.approx(model.epsilon_, abs=1e-4)


def test_a_constant_is_predicted():
    X, _ = noisy_sinc(6, 40)
    for constant in (0.0, 1e-9, 0.1, 1e9):
        model = made().fit(X, np.full(40, constant))
        np.testing.assert_allclose(model.predict(X), constant, rtol=1e-12)
        assert model.epsilon_ <= 1e-12 * constant


def test_targets_that_would_overflow_are_refused():
    X, y = noisy_sinc(6, 40)
    with pytest.raises(ValueError, match=r"y has values up to .*: scale y"):
        made().fit(X, 1e200 * y)


@pytest.mark.parametrize("mu", [0.0, -1.0, np.nan, np.inf])
def test_mu_must_be_positive(mu):
    with pytest.raises(ValueError, match=r"mu is .*; it must be a finite number above zero"):
        made(mu=mu).fit(*noisy_sinc(6, 40))


@pytest.mark.parametrize("y", [np.array(["a", "b"] * 20), np.full(40, np.nan)])
def test_targets_must_be_finite_numbers(y):
    with pytest.raises(ValueError, match=r"convert|NaN"):
        made().fit(noisy_sinc(6, 40)[0], y)


def test_in_a_pipeline_and_a_grid_search():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), made(C=100.0, tol=1e-4)),
        {"frankwolferegressor__gamma": ["auto", 6.0, 1e6]},
        cv=3,
    ).fit(*noisy_sinc(7, 120))
    assert search.best_params_ == {"frankwolferegressor__gamma": 6.0}
    assert search.best_score_ > 0.8
