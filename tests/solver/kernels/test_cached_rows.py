"""Rows of kernel values: right whatever was asked before, and never beyond the budget."""

import numpy as np
import pytest

from tests.solver.oracle_sfw import kernel_matrix
from tests.solver.problems import (
    ALL_ROWS,
    KERNELS,
    TASKS,
    assert_certified,
    full,
    gap_at,
    prepared,
    uniform,
)
from tests.solver.streams import FLOAT64
from wolfstream.solver.frank_wolfe.driver import solve
from wolfstream.solver.kernels.cached_rows import KernelRows

N = 30
X = np.random.default_rng(7).standard_normal((N, 3))
FLOAT32 = np.dtype(np.float32)


def rows_of(kernel, slots, dtype=FLOAT64):
    return KernelRows(kernel, prepared(kernel, X, dtype), slots * N * dtype.itemsize)


def held(source):
    """The columns whose rows are kept."""
    return set(np.flatnonzero(source.kept.slot_of >= 0).tolist())


def row(source, column):
    return source.kept.values[source.kept.slot_of[column]]


def fetch(source, *columns):
    """Fetch at a later iteration than whatever was fetched before."""
    source.kept.clock[0] += 1
    source.fetch(np.array(columns))


def assert_right(source, tolerance=1e-12):
    """Every kept row holds the kernel's values, and the two directions of the index agree."""
    K = kernel_matrix(source.kernel, X, X)
    for column in held(source):
        np.testing.assert_allclose(row(source, column), K[column], rtol=tolerance, atol=tolerance)
        assert source.kept.column_in[source.kept.slot_of[column]] == column
    assert len(held(source)) == np.count_nonzero(source.kept.column_in >= 0)


class TestValues:
    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_a_row_is_the_kernel_against_all_columns(self, kernel):
        source = rows_of(kernel, N)
        fetch(source, 4)
        fetch(source, 29, 0, 11)
        assert held(source) == {0, 4, 11, 29}
        assert_right(source)

    @pytest.mark.parametrize("dtype", [FLOAT64, FLOAT32])
    def test_many_at_once_equal_those_alone_to_rounding(self, dtype):
        together, alone = (rows_of(KERNELS["rbf"], N, dtype) for _ in range(2))
        fetch(together, *range(N))
        for column in range(N):
            fetch(alone, column)
        for column in range(N):
            np.testing.assert_allclose(
                row(together, column), row(alone, column), rtol=0, atol=8 * np.finfo(dtype).eps
            )

    def test_a_sample_and_itself_have_rbf_value_one(self):
        # 2 x'z - ||x||^2 - ||z||^2 does not cancel exactly; the diagonal must.
        source = rows_of(KERNELS["rbf"], N, FLOAT32)
        fetch(source, *range(N))
        assert [row(source, i)[i] for i in range(N)] == [1.0] * N

    def test_rows_that_are_kept_stay_where_they_are(self):
        source = rows_of(KERNELS["rbf"], N)
        fetch(source, 3, 5)
        before = source.kept.slot_of.copy()
        values = source.kept.values[before[3]].copy()
        fetch(source, 5, 3)
        np.testing.assert_array_equal(source.kept.slot_of, before)
        np.testing.assert_array_equal(row(source, 3), values)

    def test_part_is_the_kernel_of_some_columns_among_themselves(self):
        columns = np.array([2, 7, 8, 20])
        part = rows_of(KERNELS["polynomial"], 2).part(columns)
        part.fetch(np.arange(4))
        K = kernel_matrix(KERNELS["polynomial"], X[columns], X[columns])
        np.testing.assert_allclose([row(part, i) for i in range(4)], K, rtol=1e-12)


class TestBudget:
    @pytest.mark.parametrize("dtype", [FLOAT64, FLOAT32])
    @pytest.mark.parametrize("slots", [2, 3, 7])
    def test_is_respected(self, slots, dtype):
        spare = N * dtype.itemsize - 1
        source = KernelRows(
            KERNELS["rbf"],
            prepared(KERNELS["rbf"], X, dtype),
            slots * N * dtype.itemsize + spare,
        )
        assert source.kept.values.nbytes == slots * N * dtype.itemsize
        random = np.random.default_rng(0)
        for _ in range(50):
            fetch(source, *random.choice(N, random.integers(1, slots + 1), replace=False))
            assert len(held(source)) <= slots
        assert_right(source, 1e-5 if dtype == FLOAT32 else 1e-12)

    def test_no_more_than_all_rows_are_ever_kept(self):
        source = KernelRows(KERNELS["rbf"], prepared(KERNELS["rbf"], X), ALL_ROWS)
        assert source.kept.values.shape == (N, N)

    def test_so_many_at_once_as_half_of_it_holds(self):
        assert [rows_of(KERNELS["rbf"], slots).together for slots in (2, 3, 8)] == [1, 1, 4]

    def test_two_rows_are_the_least(self):
        needed = 2 * N * 8
        assert len(rows_of(KERNELS["rbf"], 2).kept.values) == 2
        with pytest.raises(ValueError, match=rf"{needed - 1}\b.*{N} samples.*\b{needed}\b"):
            KernelRows(KERNELS["rbf"], prepared(KERNELS["rbf"], X), needed - 1)

    def test_one_sample_needs_one_row(self):
        source = KernelRows(KERNELS["rbf"], prepared(KERNELS["rbf"], X[:1]), 8)
        source.fetch(np.array([0]))
        assert source.kept.values.tolist() == [[1.0]]


class TestLeastRecentlyUsed:
    def test_leaves_first(self):
        source = rows_of(KERNELS["rbf"], 3)
        for column in (10, 11, 12):
            fetch(source, column)
        fetch(source, 10)
        fetch(source, 13)
        assert held(source) == {10, 12, 13}
        fetch(source, 14)
        assert held(source) == {10, 13, 14}
        assert_right(source)

    def test_leaves_nobody_while_there_is_room(self):
        source = rows_of(KERNELS["rbf"], 4)
        fetch(source, 1, 2)
        fetch(source, 3)
        fetch(source, 4)
        assert held(source) == {1, 2, 3, 4}

    def test_slots_that_are_not_neighbours_are_filled_rightly(self):
        source = rows_of(KERNELS["rbf"], 4)
        for column in (1, 2, 3, 4):
            fetch(source, column)
        fetch(source, 2)
        fetch(source, 4)
        fetch(source, 8, 9)
        assert held(source) == {2, 4, 8, 9}
        assert_right(source)

    def test_requested_rows_stay_among_equally_old(self):
        source = rows_of(KERNELS["rbf"], 3)
        for column in (10, 11, 12):
            source.fetch(np.array([column]))
        source.fetch(np.array([10, 13]))
        assert {10, 13} <= held(source)
        assert_right(source)


class TestSolvingWithFewRows:
    """However few rows are kept, the steps are the same."""

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("slots", [2, 3, 5])
    @pytest.mark.parametrize("method", ["fw", "mfw", "swap", "partan"])
    @pytest.mark.parametrize("task", ["two-class", "regression"])
    def test_same_solution_as_with_all(self, task, method, slots):
        instance = TASKS[task](KERNELS["rbf"], 40, 1.0)
        few = slots * len(instance.X) * 8
        expected = solve(full(instance), method, 1e-4, 300)
        solution = solve(full(instance, cache_bytes=few), method, 1e-4, 300)
        assert solution.n_iter == expected.n_iter
        np.testing.assert_allclose(solution.alpha, expected.alpha, rtol=0, atol=1e-9)
        assert_certified(solution, instance.A)

    @pytest.mark.parametrize("slots", [2, 3, 4, 6, 12])
    @pytest.mark.parametrize("task", TASKS)
    def test_weights_everywhere_need_no_more(self, task, slots):
        instance = TASKS[task](KERNELS["rbf"], 26, 1.0)
        search = full(instance, uniform(26), cache_bytes=slots * len(instance.X) * 8)
        alpha, gradient = search.certify()
        np.testing.assert_allclose(gradient, -2.0 * instance.A @ alpha, rtol=0, atol=1e-10)

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("seed", range(4))
    def test_two_rows_are_enough_for_a_swap_from_anywhere(self, seed):
        instance = TASKS["two-class"](KERNELS["rbf"], 12, 1.0, seed)
        search = full(instance, uniform(12), cache_bytes=2 * 12 * 8)
        solution = solve(search, "swap", 1e-9, 2000)
        assert solution.converged
        assert gap_at(instance.A, solution.alpha) <= 1.1e-9
