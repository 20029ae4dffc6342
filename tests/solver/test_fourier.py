"""Random Fourier features: their inner products are the rbf kernel, on average."""

import numpy as np
import pytest

from solver.fourier import fourier_features, fourier_map
from solver.kernels import Kernel
from tests.solver.oracle_sfw import kernel_matrix

GAMMA = 0.3


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(90).standard_normal((20, 4))


def products(X, dimension, seed, gamma=GAMMA):
    V = fourier_features(fourier_map(gamma, X[0], dimension, seed), X)
    return V @ V.T


def errors(X, dimension, seeds):
    K = kernel_matrix(Kernel("rbf", GAMMA), X, X)
    off = ~np.eye(len(X), dtype=bool)
    return np.array([(products(X, dimension, seed) - K)[off] for seed in seeds])


def test_features_are_cosines_of_random_projections(rows):
    features = fourier_map(GAMMA, rows[0], 50, seed=1)
    argument = (rows - rows[0]) @ features.frequency + features.phase
    np.testing.assert_allclose(
        fourier_features(features, rows), np.sqrt(2.0 / 50) * np.cos(argument), rtol=0, atol=1e-12
    )


def test_inner_products_approach_the_kernel_on_average(rows):
    mean = errors(rows, 200, range(300)).mean(axis=0)
    # The deviation of one map's product is below 1/sqrt(D); of the mean of 300, sqrt(300) less.
    assert np.abs(mean).max() < 5.0 / np.sqrt(200 * 300)


def test_the_error_shrinks_like_one_over_the_root_of_the_dimension(rows):
    spread = [np.sqrt(np.mean(errors(rows, dimension, range(60)) ** 2)) for dimension in (64, 1024)]
    assert spread[0] / spread[1] == pytest.approx(4.0, rel=0.15)
    assert spread[0] == pytest.approx(1.0 / np.sqrt(64), rel=0.5)


def test_the_frequencies_have_the_kernels_spectrum():
    features = fourier_map(GAMMA, np.zeros(5), 20_000, seed=2)
    np.testing.assert_allclose(features.frequency.mean(axis=1), 0.0, atol=0.03)
    np.testing.assert_allclose(
        np.cov(features.frequency), 2.0 * GAMMA * np.eye(5), rtol=0, atol=0.03
    )
    assert features.phase.min() >= 0.0
    assert features.phase.max() <= 2.0 * np.pi
    assert features.phase.mean() == pytest.approx(np.pi, abs=0.1)


def test_the_same_seed_draws_the_same_map(rows):
    first, second = (fourier_map(GAMMA, rows[0], 100, seed=3) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_another_seed_draws_another(rows):
    assert not np.array_equal(products(rows, 100, seed=3), products(rows, 100, seed=4))


def test_gamma_scales_the_same_directions(rows):
    narrow, wide = (fourier_map(gamma, rows[0], 100, seed=5) for gamma in (4.0, 1.0))
    np.testing.assert_allclose(narrow.frequency, 2.0 * wide.frequency, rtol=1e-12)
    np.testing.assert_array_equal(narrow.phase, wide.phase)


def test_a_common_offset_changes_nothing(rows):
    features = fourier_map(GAMMA, rows[0], 100, seed=6)
    offset = 1e9
    moved = fourier_map(GAMMA, rows[0] + offset, 100, seed=6)
    np.testing.assert_allclose(
        fourier_features(moved, rows + offset), fourier_features(features, rows), rtol=0, atol=1e-5
    )


def test_features_of_enormous_rows_are_finite():
    X = np.array([[1e50, -1e50], [0.0, 1e50], [1e-50, 0.0]])
    V = fourier_features(fourier_map(1e100, X[0], 20, seed=7), X)
    assert np.all(np.isfinite(V))
