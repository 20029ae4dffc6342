"""Kernel values: right against direct formulas, also where a float32 product loses its digits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.streams import FLOAT64, KERNELS, dense, sparse, thin_clusters
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.entries import LARGEST_VALUE
from wolfstream.solver.kernels.functions import Kernel, largest_square_norm
from wolfstream.solver.kernels.precision import precision_for
from wolfstream.solver.kernels.prepared_rows import prepare_rows, take
from wolfstream.solver.rows.matrix import origin_of, take_rows

FLOAT32 = np.dtype(np.float32)
LINEAR = Kernel("linear")
TYPES = ("rbf", "polynomial", "linear")
# A row's exponents may be off by 1e-3 before they are taken from differences; a kernel value
# has two rows, and its matrix product rounds as well.
TOLERANCE = 4e-3


def values(kernel, X, Z, dtype=None):
    dtype = kernel.dtype if dtype is None else dtype
    left, right = (prepare_rows(kernel, rows, origin_of(X), dtype) for rows in (X, Z))
    return kernel_block(kernel, left, right)


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    return random.standard_normal((40, 6)), random.standard_normal((30, 6))


@pytest.mark.parametrize(("dtype", "tolerance"), [(FLOAT64, 1e-12), (FLOAT32, 2e-6)])
class TestAgainstScikitLearn:
    def test_rbf(self, rows, dtype, tolerance):
        K = values(Kernel("rbf", gamma=0.4), *rows, dtype)
        np.testing.assert_allclose(K, rbf_kernel(*rows, gamma=0.4), rtol=0, atol=tolerance)

    @pytest.mark.parametrize("degree", [1, 2, 3, 5])
    @pytest.mark.parametrize("coef0", [0.0, 1.5])
    def test_polynomial(self, rows, dtype, tolerance, degree, coef0):
        K = values(Kernel("polynomial", 0.4, degree, coef0), *rows, dtype)
        expected = polynomial_kernel(*rows, degree=degree, gamma=0.4, coef0=coef0)
        largest = np.abs(expected).max()
        np.testing.assert_allclose(K, expected, rtol=0, atol=tolerance * largest)

    def test_linear(self, rows, dtype, tolerance):
        K = values(Kernel("linear"), *rows, dtype)
        np.testing.assert_allclose(K, linear_kernel(*rows), rtol=0, atol=10 * tolerance)


class TestPrecision:
    def test_rbf_values_are_float32_and_unbounded_ones_float64(self, rows):
        dtypes = {kind: values(Kernel(kind), *rows).dtype for kind in TYPES}
        assert dtypes == {"rbf": FLOAT32, "polynomial": FLOAT64, "linear": FLOAT64}

    def test_a_large_common_offset_costs_nothing(self):
        random = np.random.default_rng(1)
        X = 1e9 + random.standard_normal((50, 5))
        kernel = Kernel("rbf", gamma=0.3)
        np.testing.assert_allclose(
            values(kernel, X, X), kernel_matrix(kernel, X, X), rtol=0, atol=5e-6
        )

    def test_clusters_far_from_each_other(self):
        random = np.random.default_rng(2)
        centres = np.array([0.0, 1e8, -1e8, 1e4])
        X = centres[random.integers(0, 4, 80)][:, None] + random.standard_normal((80, 3))
        kernel = Kernel("rbf", gamma=0.3)
        K, expected = values(kernel, X, X), kernel_matrix(kernel, X, X)
        np.testing.assert_allclose(K, expected, rtol=0, atol=5e-6)
        assert 0.1 < np.mean(expected > 1e-3) < 0.9

    def test_a_constant_feature_with_a_tiny_deviation(self):
        random = np.random.default_rng(3)
        X = random.standard_normal((60, 3))
        X[:, 1] = 1e7 + 1e-3 * random.standard_normal(60)
        kernel = Kernel("rbf", gamma=1.0)
        np.testing.assert_allclose(
            values(kernel, X, X), kernel_matrix(kernel, X, X), rtol=0, atol=5e-6
        )

    @pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
    @pytest.mark.parametrize("tolerance", [1e-3, 1e-5])
    @pytest.mark.parametrize("as_given", [np.asarray, sparse])
    def test_a_row_is_far_where_its_rounding_would_exceed_the_tolerance(
        self, dtype, tolerance, as_given
    ):
        """2 gamma ||x||^2 eps = tolerance at the border."""
        border = tolerance / (2.0 * np.finfo(dtype).eps)
        X = np.sqrt(border * np.array([[0.99], [1.01]]) / 0.3)
        kernel, origin = Kernel("rbf", 0.3), np.zeros(1)
        rows = prepare_rows(kernel, as_given(X), origin, dtype, tolerance)
        assert rows.far.tolist() == [False, True]
        if tolerance == 1e-3:
            default = prepare_rows(kernel, as_given(X), origin, dtype)
            assert default.far.tolist() == [False, True]

    @pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
    @given(spread=st.floats(-3.0, 9.0), width=st.floats(-9.0, 9.0), seed=st.integers(0, 2**32 - 1))
    def test_the_error_is_bounded_at_any_scale(self, dtype, spread, width, seed):
        random = np.random.default_rng(seed)
        X = 10.0**spread * random.standard_normal((12, 3))
        X[6:] = X[:6] + 10.0**-width * random.standard_normal((6, 3))
        kernel = Kernel("rbf", gamma=10.0 ** (2.0 * width) / 3.0)
        K = values(kernel, X, X, dtype)
        np.testing.assert_allclose(K, kernel_matrix(kernel, X, X), rtol=0, atol=TOLERANCE)

    @pytest.mark.parametrize("gamma", [0.0, 1e-300, 1e-40, 1e-12])
    def test_a_tiny_gamma_sees_one_point(self, rows, gamma):
        assert np.all(values(Kernel("rbf", gamma), *rows) == 1.0)

    @pytest.mark.parametrize("gamma", [1e12, 1e38, 1e40, 1e100, 1e300])
    def test_a_huge_gamma_sees_nothing_but_equal_points(self, rows, gamma):
        X, _ = rows
        K = values(Kernel("rbf", gamma), X, np.concatenate([X, X]))
        np.testing.assert_array_equal(K, np.concatenate([np.eye(len(X))] * 2, axis=1))

    def test_equal_points_have_value_one(self):
        X = np.full((5, 3), 1234.5)
        assert np.all(values(Kernel("rbf", gamma=10.0), X, X) == 1.0)


class TestPrecisionFor:
    def test_the_tolerance_is_a_thousandth_of_the_ridge_within_bounds(self):
        kernel = Kernel("rbf")
        assert precision_for(kernel, 0.05).tolerance == pytest.approx(0.05 / 1024)
        assert precision_for(kernel, 1e9).tolerance == 1e-3
        assert precision_for(kernel, 0.0).tolerance == 1e-9

    def test_values_are_float64_where_float32_is_too_coarse(self):
        border = 1024.0 * np.finfo(np.float32).eps
        assert precision_for(Kernel("rbf"), 1.01 * border).dtype == FLOAT32
        assert precision_for(Kernel("rbf"), 0.99 * border).dtype == FLOAT64
        assert precision_for(LINEAR, 1.0).dtype == FLOAT64


class TestFinite:
    def test_a_polynomial_of_rows_beyond_the_ceiling_is_finite(self):
        far, other = np.array([[1e50], [-1e50]]), np.array([[1e50]])
        K = values(Kernel("polynomial", 1.0, 9, 1.0), far, other)
        assert np.all(np.isfinite(K))

    numbers = st.one_of(
        st.floats(-1e50, 1e50, allow_subnormal=True),
        st.sampled_from([0.0, 1e-50, -1e-50, 1e19, 1e25, 1e50, -1e50]),
    )

    @given(
        X=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6),
        gamma=st.floats(0.0, 1e100),
        dtype=st.sampled_from([FLOAT32, FLOAT64]),
    )
    def test_rbf_values_lie_between_zero_and_one(self, X, gamma, dtype):
        K = values(Kernel("rbf", gamma), np.array(X), np.array(X), dtype)
        assert np.all((K >= 0.0) & (K <= 1.0 + TOLERANCE))
        np.testing.assert_allclose(np.diag(K), 1.0, rtol=0, atol=TOLERANCE)

    @given(
        X=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6),
        kernel=st.sampled_from([Kernel("linear"), Kernel("polynomial", 1.0, 2, 1.0)]),
    )
    def test_the_other_kernels_are_finite(self, X, kernel):
        assert np.all(np.isfinite(values(kernel, np.array(X), np.array(X))))

    @given(gamma=st.floats(1e-30, 1e30), degree=st.integers(1, 9), coef0=st.floats(-1e6, 1e6))
    def test_rows_within_the_largest_square_norm_keep_values_below_the_ceiling(
        self, gamma, degree, coef0
    ):
        kernel = Kernel("polynomial", gamma, degree, coef0)
        length = math.sqrt(largest_square_norm(kernel))
        X = length * np.array([[1.0, 0.0], [-1.0, 0.0], [0.6, 0.8]])
        assert np.abs(values(kernel, X, X)).max() <= LARGEST_VALUE * (1.0 + 1e-9)

    def test_the_largest_square_norm_is_no_smaller_than_it_must_be(self):
        kernel = Kernel("polynomial", 2.0, 3, 5.0)
        X = np.sqrt(np.array([[1.001 * largest_square_norm(kernel)]]))
        assert values(kernel, X, X)[0, 0] > LARGEST_VALUE

    def test_a_constant_polynomial_kernel_bears_any_row(self):
        assert largest_square_norm(Kernel("polynomial", 0.0)) == math.inf

    def test_a_hopeless_coef0_bears_none(self):
        assert largest_square_norm(Kernel("polynomial", 1.0, 3, 1e40)) == 0.0

    @pytest.mark.parametrize("kind", ["rbf", "linear"])
    def test_the_other_kernels_bear_rows_up_to_the_ceiling(self, kind):
        assert largest_square_norm(Kernel(kind)) == LARGEST_VALUE

    def test_preparing_enormous_rows_warns_of_nothing(self):
        K = values(Kernel("rbf"), np.array([[1e200], [-1e200]]), np.array([[0.0], [1e200]]))
        np.testing.assert_array_equal(K, [[0.0, 1.0], [0.0, 0.0]])


class TestBlocks:
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_tiles_cover_wide_blocks(self, kernel):
        random = np.random.default_rng(4)
        X, Z = random.standard_normal((256, 2)), random.standard_normal((1300, 2))
        K = values(kernel, X, Z, FLOAT64)
        np.testing.assert_allclose(K, kernel_matrix(kernel, X, Z), rtol=1e-10, atol=1e-12)

    def test_values_are_written_where_the_caller_says(self, rows):
        kernel = Kernel("rbf", gamma=0.4)
        left, right = (prepare_rows(kernel, X, rows[0][0], kernel.dtype) for X in rows)
        wide = np.full((40, 50), 7.0, np.float32)
        result = kernel_block(kernel, left, right, out=wide[:, 10:40])
        assert np.shares_memory(result, wide)
        np.testing.assert_array_equal(wide[:, 10:40], kernel_block(kernel, left, right))
        assert np.all(wide[:, :10] == 7.0)
        assert np.all(wide[:, 40:] == 7.0)

    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_a_row_is_prepared_alike_alone_and_among_others(self, kernel):
        random = np.random.default_rng(5)
        X = 100.0 * random.standard_normal((70, 7)) * 10.0 ** random.integers(0, 4, (70, 1))
        together = prepare_rows(kernel, X, X[0], kernel.dtype)
        for i in range(len(X)):
            alone = prepare_rows(kernel, X[i : i + 1], X[0], kernel.dtype)
            for field, of_all in zip(alone, together, strict=True):
                np.testing.assert_array_equal(field[0], of_all[i])

    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_take_selects_all_that_belongs_to_a_row(self, kernel):
        random = np.random.default_rng(6)
        X = random.standard_normal((9, 3))
        X[4] += 1e9
        rows = prepare_rows(kernel, X, X[0], kernel.dtype)
        K = kernel_block(kernel, rows, rows)
        for index in ([4, 2, 7], slice(1, 6), X[:, 0] > 0.0):
            picked = take(rows, index)
            np.testing.assert_array_equal(picked.exact, X[index])
            np.testing.assert_allclose(
                kernel_block(kernel, picked, rows), K[index], rtol=1e-6, atol=1e-12
            )


class TestSparse:
    """The same values as of dense rows, without their zeros."""

    def rows(self, seed=7, n=300):
        X, _ = thin_clusters(seed, n, n_features=20)
        X[3] = X[11] = 0.0
        return X[: n // 3], X[n // 3 :]

    @pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_values_are_those_of_dense_rows(self, kernel, dtype):
        X, Z = self.rows()
        expected = kernel_matrix(kernel, X, Z)
        K = values(kernel, sparse(X), sparse(Z), dtype)
        assert K.dtype == dtype
        tolerance = 50 * np.finfo(dtype).eps * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(K, expected, rtol=0, atol=tolerance)

    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_do_not_depend_on_the_width(self, kernel):
        X, Z = self.rows()
        K = values(kernel, sparse(X), sparse(Z))
        np.testing.assert_array_equal(values(kernel, sparse(X, 50), sparse(Z, 2**31 - 1)), K)

    def test_rows_without_entries_lie_at_the_origin(self):
        X, zero = np.array([[0.0, 2.0], [0.0, 0.0]]), np.zeros((1, 2))
        K = values(Kernel("rbf", 0.25), sparse(X), sparse(zero))
        np.testing.assert_allclose(K, [[np.exp(-1.0)], [1.0]], rtol=1e-6)
        assert values(Kernel("linear"), sparse(X), sparse(zero)).tolist() == [[0.0], [0.0]]
        cubic = Kernel("polynomial", 1.0, 3, 2.0)
        assert values(cubic, sparse(X), sparse(zero)).tolist() == [[8.0], [8.0]]

    def test_far_rows_are_compared_by_differences(self):
        """Word counts of a long text: norms of 1e9, but distances that matter."""
        random = np.random.default_rng(8)
        base = np.where(random.random(40) < 0.5, 1e8 + random.integers(0, 9, 40), 0.0)
        X = base + np.where(random.random((30, 40)) < 0.1, random.standard_normal((30, 40)), 0.0)
        X[20:] = 0.01 * X[20:] / 1e8
        kernel = Kernel("rbf", 0.2)
        assert (
            prepare_rows(kernel, sparse(X), X[0], FLOAT32).far.tolist()
            == [True] * 20 + [False] * 10
        )
        K, expected = values(kernel, sparse(X), sparse(X)), kernel_matrix(kernel, X, X)
        np.testing.assert_allclose(K, expected, rtol=0, atol=5e-6)
        assert 0.01 < np.mean((expected > 1e-3) & (expected < 0.999)) < 0.99

    @given(spread=st.floats(-3.0, 9.0), width=st.floats(-9.0, 9.0), seed=st.integers(0, 2**32 - 1))
    def test_the_error_is_bounded_at_any_scale(self, spread, width, seed):
        random = np.random.default_rng(seed)
        X = 10.0**spread * np.where(random.random((12, 5)) < 0.6, random.random((12, 5)), 0.0)
        X[6:] = X[:6] + 10.0**-width * random.standard_normal((6, 5))
        kernel = Kernel("rbf", gamma=10.0 ** (2.0 * width) / 3.0)
        K = values(kernel, sparse(X), sparse(X))
        np.testing.assert_allclose(K, kernel_matrix(kernel, X, X), rtol=0, atol=TOLERANCE)

    @pytest.mark.parametrize("kind", TYPES)
    def test_values_of_enormous_rows_are_finite(self, kind):
        X = sparse(np.array([[1e50, 0.0], [0.0, -1e50], [1e-50, 1e50]]))
        assert np.all(np.isfinite(values(Kernel(kind, 1.0, 3, 1.0), X, X)))

    def test_a_row_is_prepared_alike_alone_and_among_others(self):
        X = sparse(100.0 * self.rows()[0])
        kernel = Kernel("rbf", 0.3)
        together = prepare_rows(kernel, X, np.empty(0), FLOAT32)
        for i in (0, 3, 50):
            alone = prepare_rows(kernel, take_rows(X, [i]), np.empty(0), FLOAT32)
            assert (alone.fast[0], alone.far[0]) == (together.fast[i], together.far[i])

    def test_take_selects_all_that_belongs_to_a_row(self):
        X, _ = self.rows()
        rows = prepare_rows(Kernel("rbf", 0.3), sparse(X), np.empty(0), FLOAT32)
        K = kernel_block(Kernel("rbf", 0.3), rows, rows)
        picked = take(rows, [4, 2, 7])
        np.testing.assert_array_equal(dense(picked.exact), X[[4, 2, 7]])
        np.testing.assert_allclose(
            kernel_block(Kernel("rbf", 0.3), picked, rows), K[[4, 2, 7]], rtol=1e-5, atol=1e-12
        )

    def test_tiles_cover_wide_blocks_in_place(self):
        random = np.random.default_rng(9)
        X, Z = (np.floor(2.0 * random.random((n, 6))) for n in (256, 1300))
        left, right = (prepare_rows(LINEAR, sparse(Y), X[0], FLOAT64) for Y in (X, Z))
        wide = np.full((256, 1400), 7.0)
        kernel_block(LINEAR, left, right, out=wide[:, 50:1350])
        np.testing.assert_array_equal(wide[:, 50:1350], X @ Z.T)
        assert np.all(wide[:, :50] == 7.0)
        assert np.all(wide[:, 1350:] == 7.0)
