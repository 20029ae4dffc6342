"""gamma = "auto": 1 / (mean squared distance) of the first samples, then frozen."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from tests.solver.streams import FLOAT64, blocks, clusters, sparse, thin_clusters
from wolfstream.solver.asset import view as asset_view
from wolfstream.solver.asset.learner import Asset
from wolfstream.solver.kernels.bandwidth import SAMPLES, AutoGamma, gamma_from_rows
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set import predictions
from wolfstream.solver.working_set.learner import WorkingSet


def working_set(gamma):
    return WorkingSet(Kernel("rbf", gamma), 5.0, "msfw", 1, max_size=100)


def double_working_set(gamma):
    return WorkingSet(Kernel("rbf", gamma), 5.0, "msfw", dtype=FLOAT64)


def small_asset(gamma):
    return Asset(Kernel("rbf", gamma), dimension=16)


def predict(learner, X):
    of = asset_view if isinstance(learner, Asset) else predictions
    return of.predict(learner.view(), X)[1]


HEADS = {"working set": working_set, "asset": small_asset}


class TestGammaFromRows:
    @given(n=st.integers(2, 60), d=st.integers(1, 6), seed=st.integers(0, 2**32 - 1))
    def test_is_one_over_the_mean_squared_distance(self, n, d, seed):
        X = np.random.default_rng(seed).standard_normal((n, d)) * 10.0 ** np.arange(d)
        assert gamma_from_rows(X) == pytest.approx(1.0 / np.mean(pdist(X, "sqeuclidean")))

    def test_a_common_offset_changes_nothing(self):
        X = np.random.default_rng(0).standard_normal((50, 3))
        assert gamma_from_rows(X + 1e9) == pytest.approx(gamma_from_rows(X), rel=1e-5)

    @pytest.mark.parametrize("scale", [1e-40, 1e-10, 1e10, 1e50, 1e150])
    def test_follows_the_scale_of_the_features(self, scale):
        X = np.random.default_rng(1).standard_normal((20, 3))
        expected = gamma_from_rows(X) / scale / scale
        assert gamma_from_rows(scale * X) == pytest.approx(expected)

    def test_has_a_ceiling(self):
        assert gamma_from_rows(np.array([[0.0], [1e-300]])) == 1e100

    @pytest.mark.parametrize("n", [1, 2, 100])
    def test_of_equal_rows_is_one(self, n):
        assert gamma_from_rows(np.full((n, 3), 4.2)) == 1.0
        assert gamma_from_rows(sparse(np.full((n, 3), 4.2))) == 1.0

    @given(n=st.integers(2, 60), scale=st.sampled_from([1e-100, 1.0, 1e100]))
    def test_of_sparse_rows_is_that_of_dense_ones(self, n, scale):
        X, _ = thin_clusters(seed=n, n=n)
        gamma = gamma_from_rows(sparse(scale * X))
        assert gamma == pytest.approx(gamma_from_rows(scale * X), rel=1e-12)


class TestWarmUp:
    def test_gamma_is_estimated_at_powers_of_two_and_frozen_at_128(self):
        X, codes = clusters(seed=121, n=300)
        learner = AutoGamma(working_set)
        expected = 1.0
        for n in range(1, 301):
            learner.absorb(X[n - 1 : n], codes[n - 1 : n])
            if n in (2, 4, 8, 16, 32, 64, 128):
                expected = 1.0 / np.mean(pdist(X[:n], "sqeuclidean"))
            assert learner.gamma == pytest.approx(expected, rel=1e-12)
            assert learner.learner.kernel.gamma == learner.gamma
            assert learner.frozen == (n >= 128)

    def test_is_128_samples_long(self):
        assert SAMPLES == 128

    @pytest.mark.sweep
    @pytest.mark.parametrize("build", [double_working_set, small_asset])
    @pytest.mark.parametrize("n", [1, 2, 3, 5, 64, 100, 128, 200])
    def test_gives_the_learner_that_knew_gamma_from_the_start(self, build, n):
        X, codes = clusters(seed=122, n=200)
        learner = AutoGamma(build)
        learner.absorb(X[:n], codes[:n])
        knowing = build(learner.gamma)
        knowing.absorb(X[:n], codes[:n])
        assert learner.learner.n_classes == knowing.n_classes
        if knowing.n_classes == 2:
            np.testing.assert_allclose(
                predict(learner.learner, X), predict(knowing, X), rtol=1e-9, atol=1e-9
            )

    @pytest.mark.sweep
    @pytest.mark.parametrize("build", [double_working_set, small_asset])
    @pytest.mark.parametrize("length", [1, 3, 50, 127, 128, 129])
    def test_does_not_depend_on_the_cut(self, build, length):
        X, codes = clusters(seed=123, n=300)
        at_once, apart = AutoGamma(build), AutoGamma(build)
        at_once.absorb(X, codes)
        for part in blocks(300, length):
            apart.absorb(X[part], codes[part])
        assert apart.gamma == at_once.gamma
        np.testing.assert_allclose(
            predict(apart.learner, X), predict(at_once.learner, X), rtol=1e-9, atol=1e-9
        )

    @pytest.mark.parametrize("build", HEADS.values(), ids=HEADS)
    @given(start=st.integers(0, 140), length=st.integers(1, 160))
    def test_answers_cover_the_rows_in_order(self, build, start, length):
        X, codes = clusters(seed=124, n=300)
        learner = AutoGamma(build)
        if start:
            learner.absorb(X[:start], codes[:start])
        answers = learner.absorb(X[start : start + length], codes[start : start + length])
        covered = [i for part, _ in answers for i in range(part.start, part.stop)]
        assert covered == list(range(length))
        for part, answer in answers:
            assert len(answer.prediction) == part.stop - part.start

    def test_answers_are_given_before_a_sample_is_learned_again(self):
        X, codes = clusters(seed=125, n=64)
        learner, plain = AutoGamma(double_working_set), double_working_set(1.0)
        answers = learner.absorb(X[:2], codes[:2])
        expected = plain.absorb(X[:2], codes[:2])
        assert len(answers) == 1
        np.testing.assert_array_equal(answers[0][1].admitted, expected.admitted)

    @pytest.mark.parametrize("build", HEADS.values(), ids=HEADS)
    def test_bears_constant_data(self, build):
        X, codes = np.full((200, 3), 7.0), np.arange(200) % 2
        learner = AutoGamma(build)
        learner.absorb(X, codes)
        assert learner.gamma == 1.0
        assert np.all(np.isfinite(predict(learner.learner, X)))

    def test_keeps_the_product_of_gamma_and_square_norms_below_a_bound(self):
        X = 1e6 + np.random.default_rng(2).standard_normal((200, 2))
        codes = np.arange(200) % 2
        bounded = AutoGamma(working_set, largest_product=100.0)
        bounded.absorb(X, codes)
        assert bounded.gamma * np.max(np.sum(X[:128] ** 2, axis=1)) == pytest.approx(100.0)
        free = AutoGamma(working_set)
        free.absorb(X, codes)
        assert free.gamma == pytest.approx(1.0 / np.mean(pdist(X[:128], "sqeuclidean")), rel=1e-6)

    def test_the_bound_does_not_matter_at_the_origin(self):
        learner = AutoGamma(working_set, largest_product=1e-3)
        learner.absorb(np.zeros((4, 2)), np.array([0, 1, 0, 1]))
        assert learner.gamma == 1.0
        assert math.isfinite(learner.gamma)


class TestState:
    @pytest.mark.sweep
    @pytest.mark.parametrize("at", [0, 1, 2, 50, 64, 127, 128, 200])
    @pytest.mark.parametrize("build", HEADS.values(), ids=HEADS)
    def test_restored_goes_on_bit_for_bit(self, build, at):
        X, codes = clusters(seed=126, n=400, n_classes=3)
        live, restored = AutoGamma(build), AutoGamma(build)
        for part in blocks(at, 20):
            live.absorb(X[part], codes[part])
        state = live.state()
        saved, live = live, AutoGamma(build)  # as at a checkpoint
        for learner in (live, restored):
            learner.restore(state)
        assert restored.frozen == live.frozen == saved.frozen
        assert restored.state().keys() == state.keys()
        for part in [slice(at, at + 1), slice(at + 1, at + 90), slice(at + 90, 400)]:
            ours = live.absorb(X[part], codes[part])
            theirs = restored.absorb(X[part], codes[part])
            assert [part for part, _ in ours] == [part for part, _ in theirs]
            for (_, mine), (_, its) in zip(ours, theirs, strict=True):
                for a, b in zip(mine, its, strict=True):
                    np.testing.assert_array_equal(a, b)
        state, state_again = live.state(), restored.state()
        assert state.keys() == state_again.keys()
        for name in state:
            np.testing.assert_array_equal(state[name], state_again[name])

    def test_forgets_the_first_samples_when_gamma_is_frozen(self):
        X, codes = clusters(seed=127, n=200)
        learner = AutoGamma(working_set)
        learner.absorb(X[:100], codes[:100])
        np.testing.assert_array_equal(learner.state()["auto_rows"], X[:100])
        np.testing.assert_array_equal(learner.state()["auto_y"], codes[:100])
        learner.absorb(X[100:], codes[100:])
        assert "auto_rows" not in learner.state()
        assert "auto_y" not in learner.state()
