"""The cosine against the mathematical library's, and the waves of the bank's features."""

import math

import numpy as np
import pytest

from wolfstream.solver.adaptive.features import draw_features, transform
from wolfstream.solver.rows.cosine import TURN, cosine_of_turns


@pytest.mark.parametrize("largest", [1.0, 1000.0])
def test_it_is_accurate_to_the_rounding_of_the_argument(largest: float):
    for angle in np.random.default_rng(0).uniform(-largest, largest, 1000).tolist():
        error = abs(cosine_of_turns(angle * TURN) - math.cos(angle))
        assert error <= 1e-15 * (1.0 + abs(angle))


def test_the_features_of_a_bank_are_cosines_and_sines():
    features = draw_features(3, 0)
    Z = np.random.default_rng(1).standard_normal((20, 3)) * 3.0
    waves = transform(features, Z)[:, 4:] * math.sqrt(features.W.shape[1])
    angle = Z @ features.W
    expected = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
    np.testing.assert_allclose(waves, expected, rtol=0, atol=1e-14)
