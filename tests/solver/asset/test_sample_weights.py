"""Sample and class weights in ASSET: w times the gradient, and steps that allow for it."""

import numpy as np
import pytest

from tests.solver.differences import assert_same_state
from tests.solver.streams import clusters
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.view import predict
from wolfstream.solver.kernels.bandwidth import AutoGamma
from wolfstream.solver.kernels.functions import Kernel

LINEAR = Kernel("linear")
RBF = Kernel("rbf", gamma=0.3)
TASKS = ("classification", "regression")


def samples(task, n=300, seed=0):
    X, codes = clusters(seed, n, n_classes=3)
    return X, codes if task == "classification" else X[:, 0] + np.sin(X[:, 1])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("algorithm", ["asset", "asset*"])
def test_samples_of_weight_one_are_learned_as_without_weights(task, algorithm):
    X, y = samples(task)
    one, other = (Asset(RBF, task=task, algorithm=algorithm, dimension=32) for _ in range(2))
    one.absorb(X, y)
    other.absorb(X, y, weight=np.ones(len(X)))
    assert_same_state(one, other)


def test_step_length_grows_with_weight():
    """The first step of asset* from zero is eta w y V with eta = 1 / lambda, then projected."""
    X = np.array([[1.0, 2.0]])
    for w in (0.25, 1.0, 3.0):
        learner = Asset(LINEAR, algorithm="asset*", features="identity", lam=1.0)
        learner.meet_classes(2)
        learner.absorb(X, np.array([1]), weight=np.array([w]))
        step = w * X[0]
        radius = np.sqrt(w)
        expected = step * min(1.0, radius / np.linalg.norm(step))
        np.testing.assert_allclose(learner.view().gamma[1], expected)


def test_the_feasible_set_grows_with_the_mean_weight():
    """lambda ||gamma||^2 <= mean w, so that w = 4 throughout is lambda / 4 throughout."""
    X, y = samples("classification")
    heavy = Asset(RBF, algorithm="asset*", dimension=32, lam=0.04)
    heavy.absorb(X, y, weight=np.full(len(X), 4.0))
    light = Asset(RBF, algorithm="asset*", dimension=32, lam=0.01)
    light.absorb(X, y)
    np.testing.assert_allclose(heavy.view().gamma, light.view().gamma, atol=1e-9)


def test_a_common_factor_of_weights_and_lambda_changes_nothing():
    """In ASSET too, whose eta is D_X / (D_G sqrt(j)): both D grow, and the step stays."""
    X, y = samples("regression")
    heavy, light = (
        Asset(RBF, task="regression", dimension=32, lam=lam, epsilon=0.0) for lam in (0.04, 0.01)
    )
    heavy.absorb(X, y, weight=np.full(len(X), 4.0))
    light.absorb(X, y)
    np.testing.assert_allclose(predict(heavy.view(), X)[1], predict(light.view(), X)[1], atol=0.3)


def test_class_weights_are_weights_of_their_samples():
    X, y = samples("classification")
    of_classes = np.array([0.5, 3.0, 1.0])
    classes, each = Asset(RBF, dimension=32, class_weight=of_classes[:2]), Asset(RBF, dimension=32)
    classes.absorb(X, y)
    each.absorb(X, y, weight=of_classes[y])
    assert_same_state(classes, each)


def test_a_class_weight_must_be_above_zero():
    with pytest.raises(ValueError, match="greater than zero"):
        Asset(RBF, class_weight=[1.0, 0.0])


@pytest.mark.parametrize("task", TASKS)
def test_a_step_of_regression_ends_in_the_tube_whatever_the_weight(task):
    X, y = samples(task, 60)
    learner = Asset(RBF, task=task, dimension=32)
    for _ in range(3):
        learner.absorb(X, y, weight=np.full(len(X), 1e6))
    view = learner.view()
    assert np.isfinite(view.gamma).all()
    if task == "regression":
        assert np.abs(predict(view, X)[1] - y).max() < 4.0 * y.std()


@pytest.mark.parametrize("kind", ["fourier", "nystrom"])
def test_samples_that_are_learned_again_keep_their_weights(kind):
    X, y = samples("classification", 200)
    weight = np.random.default_rng(0).uniform(0.1, 5.0, len(X))

    def build(gamma):
        return Asset(Kernel("rbf", gamma), features=kind, dimension=64)

    whole, live, again = (AutoGamma(build) for _ in range(3))
    whole.absorb(X, y, weight)
    live.absorb(X[:50], y[:50], weight[:50])
    again.restore(live.state())
    for one in (live, again):
        one.absorb(X[50:], y[50:], weight[50:])
    assert_same_state(live, again)
    np.testing.assert_allclose(
        whole.learner.view().gamma, live.learner.view().gamma, rtol=1e-6, atol=1e-9
    )
