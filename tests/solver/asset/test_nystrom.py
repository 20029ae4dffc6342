"""Nystrom features against P5 eq. 6 and 7 in plain numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.streams import KERNELS, clusters, sparse, thin_clusters
from wolfstream.solver.asset.nystrom import (
    BATCH_EIGENVALUE_CUT,
    landmark_kernel,
    nystrom_features,
    nystrom_from,
    nystrom_map,
)
from wolfstream.solver.kernels.functions import Kernel

RBF = KERNELS["rbf"]
INDEFINITE = Kernel("polynomial", gamma=1.0, degree=3, coef0=-1.0)
for_each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def relative_error(V, K):
    return np.abs(V @ V.T - K).max() / np.abs(K).max()


@for_each_kernel
def test_all_rows_as_landmarks_give_the_gram_matrix(kernel):
    X = clusters(301, 80)[0]
    V = nystrom_features(nystrom_map(kernel, X), X)
    assert relative_error(V, kernel_matrix(kernel, X, X)) < 1e-9


@for_each_kernel
def test_features_are_those_of_equation_7(kernel):
    """V = Psi_S Q D^(-1/2), and so V V' = Psi_S W^+ Psi_S' (eq. 6)."""
    X = clusters(302, 60)[0]
    K_S = kernel_matrix(kernel, X, X[:5])
    value, Q = np.linalg.eigh(K_S[:5])
    kept = value > 1e-10 * value.max()
    expected = K_S @ Q[:, kept] / np.sqrt(value[kept])
    V = nystrom_features(nystrom_map(kernel, X[:5]), X)
    assert V.flags.c_contiguous
    assert V.shape == expected.shape
    pseudo_inverse = np.linalg.pinv(K_S[:5], rcond=1e-10, hermitian=True)
    np.testing.assert_allclose(V @ V.T, K_S @ pseudo_inverse @ K_S.T, rtol=0, atol=1e-7)
    # Largest eigenvalue first; the sign of an eigenvector is free.
    np.testing.assert_allclose(np.abs(V), np.abs(expected[:, ::-1]), rtol=0, atol=1e-7)


def test_the_error_decreases_with_the_landmarks():
    X = clusters(303, 400)[0]
    K = kernel_matrix(RBF, X, X)
    errors = [
        np.linalg.norm(K - V @ V.T)
        for V in (nystrom_features(nystrom_map(RBF, X[:s]), X) for s in (10, 40, 160, 400))
    ]
    assert np.all(np.diff(errors) < 0)
    assert errors[-1] < 1e-6 * np.linalg.norm(K)


def test_products_never_exceed_the_kernel():
    """V V' is the best approximation from the landmarks' span: K - V V' is semidefinite."""
    X = clusters(304, 100)[0]
    V = nystrom_features(nystrom_map(RBF, X[:20]), X)
    residue = kernel_matrix(RBF, X, X) - V @ V.T
    assert np.linalg.eigvalsh(residue)[0] > -1e-9


class TestCut:
    def test_equal_landmarks_count_once(self):
        X = clusters(305, 30)[0]
        once = nystrom_map(RBF, X)
        thrice = nystrom_map(RBF, np.repeat(X, 3, axis=0))
        assert thrice.whitening.shape == (90, 30)
        V, W = nystrom_features(once, X), nystrom_features(thrice, X)
        np.testing.assert_allclose(V @ V.T, W @ W.T, rtol=0, atol=1e-9)

    @pytest.mark.parametrize(("kernel", "rank"), [("linear", 4), ("quadratic", 15), ("cubic", 35)])
    def test_the_dimension_is_the_rank(self, kernel, rank):
        X = clusters(306, 120)[0]
        assert nystrom_map(KERNELS[kernel], X).whitening.shape == (120, rank)

    def test_eigenvalues_below_it_are_dropped(self):
        X = clusters(307, 50)[0]
        value = np.linalg.eigvalsh(kernel_matrix(RBF, X, X))
        for cut in (1e-1, 1e-3, 1e-6):
            expected = int(np.sum(value >= cut * value[-1]))
            assert nystrom_map(RBF, X, cut).whitening.shape[1] == expected

    def test_so_are_negative_ones(self):
        X = clusters(308, 40)[0]
        K = kernel_matrix(INDEFINITE, X, X)
        value, Q = np.linalg.eigh(K)
        assert value[0] < -1.0
        V = nystrom_features(nystrom_map(INDEFINITE, X), X)
        positive = (Q * np.maximum(value, 0.0)) @ Q.T
        np.testing.assert_allclose(V @ V.T, positive, rtol=0, atol=1e-9 * value[-1])

    def test_no_positive_eigenvalue_leaves_no_feature(self):
        assert nystrom_map(KERNELS["linear"], np.zeros((3, 2))).whitening.shape == (3, 0)
        negative = Kernel("polynomial", gamma=1.0, degree=1, coef0=-1.0)
        features = nystrom_map(negative, np.zeros((3, 2)))
        assert nystrom_features(features, np.ones((4, 2))).shape == (4, 0)

    @settings(deadline=None)
    @given(
        rows=st.lists(st.tuples(*[st.integers(-3, 3)] * 2), min_size=1, max_size=20),
        kernel=st.sampled_from([*KERNELS.values(), INDEFINITE]),
    )
    def test_any_landmarks_give_finite_features(self, rows, kernel):
        X = np.array(rows, np.float64)
        features = nystrom_map(kernel, X)
        V = nystrom_features(features, X)
        assert V.shape[1] <= len(np.unique(X, axis=0))
        assert np.all(np.isfinite(V))


class TestPrecision:
    def test_the_cut_of_a_batch_drops_what_rounds_away(self):
        X = clusters(318, 100)[0]
        kernel = Kernel("rbf", gamma=1e-3)
        coarse = nystrom_map(kernel, X, BATCH_EIGENVALUE_CUT)
        assert coarse.whitening.shape[1] < nystrom_map(kernel, X).whitening.shape[1]
        V = nystrom_features(coarse, X)
        np.testing.assert_allclose(V @ V.T, kernel_matrix(kernel, X, X), rtol=0, atol=1e-4)

    def test_a_common_offset_changes_nothing(self):
        X = clusters(309, 60)[0]
        V = nystrom_features(nystrom_map(RBF, X[:30]), X)
        moved = nystrom_features(nystrom_map(RBF, X[:30] + 1e6), X + 1e6)
        np.testing.assert_allclose(moved @ moved.T, V @ V.T, rtol=0, atol=1e-7)

    def test_rows_close_together_are_told_apart(self):
        """gamma ||x - z||^2 about 1e-6: float32 values would be rounded by a tenth of that."""
        X = clusters(310, 60)[0]
        kernel = Kernel("rbf", gamma=1e-7)
        V = nystrom_features(nystrom_map(kernel, X), X)
        K = kernel_matrix(kernel, X, X)
        np.testing.assert_allclose(1.0 - V @ V.T, 1.0 - K, rtol=0, atol=1e-10)

    @pytest.mark.parametrize("gamma", [1e-48, 1e48])
    def test_large_values_do_not_overflow(self, gamma):
        kernel = Kernel("polynomial", gamma=gamma, degree=2, coef0=0.0)
        X = clusters(311, 30)[0]
        V = nystrom_features(nystrom_map(kernel, X), X)
        assert relative_error(V, kernel_matrix(kernel, X, X)) < 1e-9

    def test_rows_out_of_all_proportion_are_finite(self):
        X = clusters(312, 30)[0]
        X[-1] = 1e9
        V = nystrom_features(nystrom_map(RBF, X), np.vstack([X, X + 1e12]))
        assert np.all(np.isfinite(V))


@for_each_kernel
def test_sparse_rows_have_the_features_of_dense_ones(kernel):
    X = thin_clusters(313, 60)[0]
    V = nystrom_features(nystrom_map(kernel, X[:20]), X)
    W = nystrom_features(nystrom_map(kernel, sparse(X[:20])), sparse(X, 100))
    scale = np.abs(V).max() ** 2
    np.testing.assert_allclose(W @ W.T, V @ V.T, rtol=0, atol=1e-7 * scale)


def test_rows_of_the_other_kind_are_refused():
    X = thin_clusters(314, 20)[0]
    with pytest.raises(TypeError, match="sparse"):
        nystrom_features(nystrom_map(RBF, X), sparse(X))
    with pytest.raises(TypeError, match="dense"):
        nystrom_features(nystrom_map(RBF, sparse(X)), X)


def test_a_map_made_earlier_is_the_same():
    X = clusters(315, 40)[0]
    features = nystrom_map(RBF, X[:15])
    again = nystrom_from(RBF, X[:15].copy(), features.whitening.copy())
    np.testing.assert_array_equal(nystrom_features(again, X), nystrom_features(features, X))


def test_landmark_values_are_the_kernels():
    X = clusters(316, 40)[0]
    np.testing.assert_allclose(
        landmark_kernel(nystrom_map(RBF, X[:15]), X),
        kernel_matrix(RBF, X, X[:15]),
        rtol=0,
        atol=1e-12,
    )
