"""Random Fourier features: their inner products are the rbf kernel, on average."""

import numpy as np
import pytest

from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.streams import sparse, thin_clusters
from wolfstream.solver.asset.fourier import fourier_features, fourier_map, widened
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.matrix import take_rows

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


def test_a_feature_has_the_same_frequencies_whatever_the_width():
    wide = fourier_map(GAMMA, np.zeros(300), 10, seed=3)
    for width in (1, 63, 64, 65, 299):
        narrow = fourier_map(GAMMA, np.zeros(width), 10, seed=3)
        np.testing.assert_array_equal(narrow.frequency, wide.frequency[:width])


def test_the_frequencies_of_different_features_and_the_phase_are_independent():
    drawn = fourier_map(GAMMA, np.zeros(200), 2000, seed=0)
    correlation = np.corrcoef(np.vstack([drawn.frequency, drawn.phase]))
    np.testing.assert_allclose(correlation, np.eye(201), rtol=0, atol=6.0 / np.sqrt(2000))


def test_another_seed_draws_another(rows):
    assert not np.array_equal(products(rows, 100, seed=3), products(rows, 100, seed=4))


def test_gamma_scales_the_same_directions():
    narrow, wide = (fourier_map(gamma, np.zeros(4), 100, seed=5) for gamma in (4.0, 1.0))
    np.testing.assert_allclose(narrow.frequency, 2.0 * wide.frequency, rtol=1e-12)
    np.testing.assert_array_equal(narrow.phase, wide.phase)


def test_map_ignores_the_first_row(rows):
    of_first, of_zero = (
        fourier_map(GAMMA, origin, 100, seed=6) for origin in (rows[0], 0 * rows[0])
    )
    np.testing.assert_allclose(
        fourier_features(of_first, rows), fourier_features(of_zero, rows), rtol=0, atol=1e-13
    )


def test_a_common_offset_costs_no_digits(rows):
    offset = 1e9
    moved = fourier_map(GAMMA, rows[0] + offset, 100, seed=6)
    features = moved._replace(origin=rows[0])
    np.testing.assert_allclose(
        fourier_features(moved, rows + offset), fourier_features(features, rows), rtol=0, atol=1e-5
    )


def test_features_of_enormous_rows_are_finite():
    X = np.array([[1e50, -1e50], [0.0, 1e50], [1e-50, 0.0]])
    V = fourier_features(fourier_map(1e100, X[0], 20, seed=7), X)
    assert np.all(np.isfinite(V))


@pytest.mark.parametrize("size", [1e-300, 1e-3, 1.0, 100.0, 1e4, 9e5, 1.1e6, 1e12, 1e100])
def test_cosines_are_exact_to_the_rounding_of_their_argument(size):
    argument = size * np.random.default_rng(8).uniform(-1.0, 1.0, (50, 1))
    X = np.vstack([argument, size * np.arange(-10, 11)[:, None] * np.pi / 20.0])
    features = fourier_map(0.5, np.zeros(1), 16, seed=8)
    features = features._replace(frequency=np.ones((1, 16)))
    expected = np.sqrt(2.0 / 16) * np.cos(X + features.phase)
    V = fourier_features(features, X)
    rounding = 4.0 * np.finfo(float).eps * (1.0 + np.abs(X + features.phase))
    assert np.all(np.abs(V - expected) <= rounding)
    assert np.abs(V).max() <= np.sqrt(2.0 / 16) * (1.0 + 1e-15)


@pytest.fixture(scope="module")
def texts():
    return thin_clusters(seed=91, n=80, n_features=500)[0]


class TestSparse:
    def test_features_are_those_of_dense_rows_with_the_origin_at_zero(self, texts):
        of_sparse = fourier_map(GAMMA, np.empty(0), 50, seed=1)
        of_dense = fourier_map(GAMMA, np.zeros(500), 50, seed=1)
        np.testing.assert_allclose(
            fourier_features(of_sparse, sparse(texts)),
            fourier_features(of_dense, texts),
            rtol=0,
            atol=1e-12,
        )

    def test_map_grows_and_keeps_frequencies(self, texts):
        features, whole = fourier_map(GAMMA, np.empty(0), 8, seed=2), sparse(texts, 10**9)
        expected = fourier_map(GAMMA, np.zeros(2000), 8, seed=2).frequency
        narrow = texts.copy()
        for reach in (3, 40, 64, 65, 300, 500):
            narrow[:, :reach] = texts[:, :reach]
            narrow[:, reach:] = 0.0
            narrow[0, reach - 1] = 1.0
            grown = widened(features, sparse(narrow, 10**9))
            assert reach <= len(grown.frequency) <= 1.25 * reach + 64
            np.testing.assert_array_equal(grown.frequency, expected[: len(grown.frequency)])
            assert widened(grown, sparse(narrow)) is grown
            features = grown
        np.testing.assert_array_equal(
            fourier_features(features, whole),
            fourier_features(fourier_map(GAMMA, np.empty(0), 8, seed=2), whole),
        )

    def test_a_row_has_the_same_features_alone(self, texts):
        features, whole = fourier_map(GAMMA, np.empty(0), 30, seed=3), sparse(texts)
        together = fourier_features(features, whole)
        for i in range(0, 80, 13):
            alone = fourier_features(features, take_rows(whole, [i]))
            np.testing.assert_array_equal(alone[0], together[i])

    def test_rows_of_the_other_kind_are_refused(self, texts):
        with pytest.raises(TypeError, match="sparse"):
            fourier_features(fourier_map(GAMMA, np.empty(0), 8, seed=1), texts)
        with pytest.raises(TypeError, match="sparse"):
            fourier_features(fourier_map(GAMMA, texts[0], 8, seed=1), sparse(texts))
