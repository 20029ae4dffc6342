"""Gradients of ASSET's scores, by central differences."""

import numpy as np
import pytest

from tests.solver.differences import central
from tests.solver.streams import clusters
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.asset.view import predict, score_gradient
from wolfstream.solver.kernels.functions import Kernel

MAPS = {
    "fourier": Kernel("rbf", 0.4),
    "nystrom": Kernel("polynomial", 0.2, 3, 0.5),
    "identity": Kernel("linear"),
}


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("classes", [2, 4])
def test_gradients_of_classes_are_central_differences(features, classes):
    X, codes = clusters(0, 200, 3, classes)
    learner = Asset(MAPS[features], features=features, dimension=32, seed=1)
    learner.absorb(X, codes)
    view, direction = learner.view(), np.linspace(-1.0, 1.0, classes)

    def score(x):
        decision = predict(view, x[None])[1][0]
        return direction @ (np.array([-0.5, 0.5]) * decision if classes == 2 else decision)

    x = np.array([0.3, -0.2, 0.5])
    expected = central(score, x)
    np.testing.assert_allclose(score_gradient(view, x, direction), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("features", MAPS)
def test_gradients_of_numbers_are_central_differences(features):
    X = np.random.default_rng(0).standard_normal((300, 3))
    learner = Asset(MAPS[features], task="regression", features=features, dimension=32, seed=1)
    learner.absorb(X, 50.0 + 10.0 * np.sin(X[:, 0]))
    view, x = learner.view(), np.array([0.3, -0.2, 0.5])
    expected = central(lambda x: predict(view, x[None])[1][0], x)
    found = score_gradient(view, x, np.ones(1))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
