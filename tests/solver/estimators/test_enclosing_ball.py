"""EnclosingBall: known geometry, scores by hand, who is outside."""

import numpy as np
import pytest

from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.streams import clusters
from wolfstream import EnclosingBall
from wolfstream.solver.kernels.functions import Kernel


def made(**parameters):
    return EnclosingBall(**({"random_state": 0} | parameters))


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_the_ball_of_known_geometry(offset):
    """Four points on a circle of radius 5 and some within: centre and radius are the circle's."""
    centre = np.array([1.0, -2.0]) + offset
    corners = 5.0 * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.6, -0.8]])
    inner = np.random.default_rng(0).uniform(-2.0, 2.0, (30, 2))
    X = np.vstack([corners, inner]) + centre
    model = made(kernel="linear", contamination="auto", tol=1e-8).fit(X)
    assert model.radius_ == pytest.approx(5.0, abs=1e-6)
    np.testing.assert_allclose(model.dual_coef_ @ model.support_vectors_, [centre], atol=1e-3)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert set(model.support_) <= {0, 1, 2, 3}
    assert model.dual_coef_.sum() == pytest.approx(1.0, abs=1e-9)
    assert model.objective_ == pytest.approx(25.0, abs=1e-6)
    np.testing.assert_allclose(
        model.score_samples(X), -np.sum((X - centre) ** 2, axis=1), atol=1e-2
    )


@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
def test_scores_are_square_distances_from_the_centre(kernel):
    X, _ = clusters(0, 90)
    model = made(kernel=kernel, degree=2).fit(X[:60])
    values = Kernel(kernel, model.gamma_, 2, 1.0)
    V, alpha = model.support_vectors_, model.dual_coef_[0]
    own = np.diag(kernel_matrix(values, X, X))
    centre = alpha @ kernel_matrix(values, V, V) @ alpha
    by_hand = 2.0 * kernel_matrix(values, X, V) @ alpha - own - centre
    np.testing.assert_allclose(model.score_samples(X), by_hand, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(X), model.score_samples(X) - model.offset_, atol=0
    )
    np.testing.assert_array_equal(
        model.predict(X), np.where(model.decision_function(X) < 0.0, -1, 1)
    )


@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
@pytest.mark.parametrize("sampling", [None, 30])
def test_with_an_infinite_cost_nobody_is_outside(kernel, sampling):
    X, _ = clusters(1, 120)
    model = made(kernel=kernel, contamination="auto", sampling=sampling).fit(X)
    assert np.all(model.predict(X) == 1)
    assert model.score_samples(X).min() == pytest.approx(-(model.radius_**2), rel=0.05)


def test_a_finite_cost_lets_the_ball_shrink():
    X, _ = clusters(1, 120)
    radius = [made(C=C, contamination="auto").fit(X).radius_ for C in (0.02, 0.1, 1.0, np.inf)]
    assert np.all(np.diff(radius) > 0.0)


def test_the_objective_is_that_of_the_primal_up_to_the_gap():
    X, _ = clusters(2, 80)
    model = made(C=0.1, contamination="auto", tol=1e-6).fit(X)
    slack = np.maximum(-model.score_samples(X) - model.radius_**2, 0.0)
    primal = model.radius_**2 + 0.1 * np.sum(slack**2)
    assert primal == pytest.approx(model.objective_, abs=1e-3)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.5])
def test_contamination_is_the_share_outside(share):
    X, _ = clusters(3, 200)
    outside = np.mean(made(contamination=share).fit(X).predict(X) == -1)
    assert outside == pytest.approx(share, abs=0.006)


@pytest.mark.parametrize("share", [0.0, 0.6, -0.1, np.nan, "some", None])
def test_contamination_that_is_no_share(share):
    with pytest.raises(ValueError, match=r"it must be 'auto' or in \(0, 0.5\]"):
        made(contamination=share).fit(clusters(3, 40)[0])


def test_what_is_far_away_is_new():
    X, _ = clusters(4, 200)
    model = made().fit(X[:150])
    assert np.all(model.predict(X[:50] + 20.0) == -1)
    assert np.mean(model.predict(X[150:]) == 1) > 0.7
