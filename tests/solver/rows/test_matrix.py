"""Sparse rows: what a CSR matrix becomes, and that both kinds of rows answer alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_matrix

from tests.solver.streams import dense, sparse
from wolfstream.solver.rows.matrix import (
    SparseRows,
    check_same_kind,
    concatenate_rows,
    first_features,
    largest_feature,
    n_nonzeros,
    n_rows,
    origin_of,
    rows_from_arrays,
    rows_to_arrays,
    sparse_from_csr,
    square_norms,
    take_rows,
    to_csr,
)
from wolfstream.solver.rows.scatter import scatter

ENTRIES = st.sampled_from([0.0, 0.0, 0.0, 1.0, -2.5, 1e-3, 7.0])
MATRICES = hnp.arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 7)), elements=ENTRIES)


def entries_of(X):
    """Each row's (indices, values) as lists."""
    return [
        (X.indices[a:b].tolist(), X.values[a:b].tolist())
        for a, b in zip(X.start, X.stop, strict=True)
    ]


class TestFromCsr:
    @given(X=MATRICES)
    def test_a_matrix_survives_the_way_there_and_back(self, X):
        matrix = csr_matrix(X)
        rows = sparse_from_csr(matrix.data, matrix.indices, matrix.indptr, X.shape[1])
        data, indices, indptr = to_csr(rows)
        np.testing.assert_array_equal(
            csr_matrix((data, indices, indptr), shape=X.shape).toarray(), X
        )
        assert (n_rows(rows), rows.width, n_nonzeros(rows)) == (*X.shape, np.count_nonzero(X))

    def test_types_are_those_of_the_solver(self):
        rows = sparse_from_csr([True], np.array([2], np.uint8), [0, 1, 1], 3)
        dtypes = [array.dtype for array in rows[:4]]
        assert dtypes == [np.int64, np.int64, np.int32, np.float64]

    def test_entries_are_sorted_equal_ones_summed_and_zeros_dropped(self):
        data = [1.0, 2.0, 4.0, 5.0, 0.0, 1.0, -1.0, 3.0]
        indices = [7, 2, 7, 0, 1, 3, 3, 4]
        rows = sparse_from_csr(data, indices, [0, 3, 5, 5, 8], 8)
        assert entries_of(rows) == [([2, 7], [2.0, 5.0]), ([0], [5.0]), ([], []), ([4], [3.0])]

    def test_the_callers_arrays_are_not_kept(self):
        data, indices = np.array([1.0, 2.0]), np.array([0, 3], np.int32)
        rows = sparse_from_csr(data, indices, np.array([0, 2]), 4)
        data[:], indices[:] = 9.0, 1
        assert entries_of(rows) == [([0, 3], [1.0, 2.0])]

    @pytest.mark.parametrize("width", [0, 5])
    def test_there_may_be_no_entry_and_no_row(self, width):
        assert entries_of(sparse_from_csr([], [], [0, 0, 0], width)) == [([], [])] * 2
        assert n_rows(sparse_from_csr([], [], [0], width)) == 0

    @pytest.mark.parametrize(
        ("data", "indices", "indptr", "width", "said"),
        [
            ([1.0], [4], [0, 1], 4, r"an index lies outside \[0, 4\)"),
            ([1.0], [-1], [0, 1], 4, r"an index lies outside \[0, 4\)"),
            ([1.0, 2.0], [0], [0, 1], 4, "indptr must ascend from 0"),
            ([1.0], [0], [0, 2], 4, "indptr must ascend from 0"),
            ([1.0], [0], [1, 1], 4, "indptr must ascend from 0"),
            ([1.0, 2.0], [0, 1], [0, 2, 1, 2], 4, "indptr must ascend from 0"),
            ([1.0], [0], [], 4, "must be vectors"),
            ([[1.0]], [0], [0, 1], 4, "must be vectors"),
            ([1.0], [0], [0, 1], 2**31, "the number of features"),
            ([1.0], [0], [0, 1], -1, "the number of features"),
        ],
    )
    def test_arrays_that_do_not_belong_together_are_refused(
        self, data, indices, indptr, width, said
    ):
        with pytest.raises(ValueError, match=said):
            sparse_from_csr(data, indices, indptr, width)


class TestSelection:
    @given(X=MATRICES, data=st.data())
    def test_takes_the_rows_that_numpy_would(self, X, data):
        n = len(X)
        positions = data.draw(st.lists(st.integers(-n, n - 1), max_size=12))
        mask = data.draw(hnp.arrays(np.bool_, n))
        for index in (np.array(positions, np.int64), mask, slice(1, None), slice(None, None, -2)):
            np.testing.assert_array_equal(dense(take_rows(sparse(X), index)), X[index])
            np.testing.assert_array_equal(take_rows(X, index), X[index])

    @given(MATRICES, st.integers(0, 8), st.data())
    def test_the_first_features_are_those_of_lower_number(self, X, count, data):
        chosen = data.draw(st.lists(st.integers(0, len(X) - 1)))
        rows = take_rows(sparse(X), chosen)
        few = first_features(rows, count)
        assert entries_of(few) == entries_of(sparse(X[chosen][:, :count]))
        assert few.values is rows.values
        assert few.width == min(X.shape[1], count)

    def test_shares_the_heap(self):
        rows = sparse(np.eye(4))
        assert take_rows(rows, [2, 0]).values is rows.values

    @given(X=MATRICES, data=st.data())
    def test_all_rows_answer_alike_dense_and_sparse(self, X, data):
        index = np.array(data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1)))
        rows = take_rows(sparse(X), index)
        assert n_rows(rows) == n_rows(X[index]) == len(index)
        np.testing.assert_allclose(square_norms(rows), square_norms(X[index]), rtol=1e-15)
        nonzero = np.flatnonzero(X[index].any(axis=0))
        assert largest_feature(rows) == (nonzero[-1] if len(nonzero) else -1)

    @given(X=MATRICES)
    def test_joined_they_follow_each_other(self, X):
        for cut in range(len(X) + 1):
            parts = [take_rows(sparse(X), part) for part in (slice(cut, None), slice(0, cut))]
            joined = concatenate_rows(parts)
            np.testing.assert_array_equal(dense(joined), np.concatenate([X[cut:], X[:cut]]))
            assert not np.shares_memory(joined.values, parts[0].values)

    def test_joined_they_are_as_wide_as_the_widest(self):
        assert (
            concatenate_rows([sparse(np.eye(2)), sparse(np.eye(5)), sparse(np.eye(3))]).width == 5
        )

    def test_the_two_kinds_do_not_mix(self):
        X = np.eye(3)
        check_same_kind(X, X)
        check_same_kind(sparse(X), sparse(X))
        with pytest.raises(TypeError, match="the first rows were sparse, these are dense"):
            check_same_kind(sparse(X), X)
        with pytest.raises(TypeError, match="the first rows were dense, these are sparse"):
            concatenate_rows([X, X, sparse(X)])

    def test_only_dense_rows_have_an_origin(self):
        X = np.eye(3)
        origin = origin_of(X)
        X[0] = 5.0
        assert origin.tolist() == [1.0, 0.0, 0.0]
        assert len(origin_of(sparse(X))) == 0


class TestScatter:
    @given(X=MATRICES, factor=st.sampled_from([1.0, 1e-150, 1e150]))
    def test_is_the_sum_of_squared_distances_from_the_mean(self, X, factor):
        expected = np.sum((X - X.mean(axis=0)) ** 2)
        for rows in (factor * X, sparse(factor * X)):
            total, scale = scatter(rows)
            assert total * (scale / factor) ** 2 == pytest.approx(expected, rel=1e-12, abs=1e-25)

    def test_of_equal_rows_is_nothing_at_all(self):
        X = np.tile([0.1, 0.0, 1e9], (7, 1))
        assert scatter(X) == scatter(sparse(X)) == (0.0, 0.0)
        assert scatter(sparse(np.zeros((3, 2)))) == (0.0, 0.0)

    def test_a_large_common_offset_costs_no_digits(self):
        random = np.random.default_rng(0)
        noise = random.integers(-4, 5, (50, 3)) / 8.0
        expected = np.sum((noise - noise.mean(axis=0)) ** 2)
        total, scale = scatter(sparse(noise + 1e9))
        assert total * scale**2 == pytest.approx(expected, rel=1e-9)


class TestArrays:
    @given(X=MATRICES)
    def test_rows_survive_being_named_arrays(self, X):
        for rows in (X, take_rows(sparse(X), slice(None, None, -1))):
            arrays = rows_to_arrays("some", rows)
            for array in arrays.values():
                array.flags.writeable = False
            again = rows_from_arrays("some", arrays)
            if isinstance(rows, SparseRows):
                assert again.width == rows.width
                assert entries_of(again) == entries_of(rows)
            else:
                np.testing.assert_array_equal(again, rows)

    def test_nothing_comes_of_nothing(self):
        assert rows_from_arrays("some", rows_to_arrays("other", sparse(np.eye(2)))) is None
