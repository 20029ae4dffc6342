"""Rows in slots: what was written last is there, and pictures taken before do not change."""

import numpy as np

from tests.solver.streams import dense, sparse
from wolfstream.solver.rows.matrix import compact, take_rows
from wolfstream.solver.rows.slots import grown_rows, put_rows, rows_nbytes


def random_rows(random, n):
    return np.where(random.random((n, 9)) < 0.4, random.standard_normal((n, 9)), 0.0)


def test_holds_what_was_written_last():
    random = np.random.default_rng(1)
    X, expected = grown_rows(compact(sparse(np.zeros((0, 9)))), 20), np.zeros((20, 9))
    filled = 0
    for _ in range(60):
        slots = random.choice(20, 4, replace=False)
        new = random_rows(random, 4)
        shared, before = X, X.values[:filled].copy()
        X, filled = put_rows(X, filled, slots, sparse(new))
        expected[slots] = new
        np.testing.assert_array_equal(dense(X), expected)
        np.testing.assert_array_equal(shared.values[: len(before)], before)


def test_takes_no_more_than_twice_its_rows_in_the_long_run():
    random = np.random.default_rng(2)
    X, filled = grown_rows(compact(sparse(np.zeros((0, 9)))), 30), 0
    for _ in range(300):
        slots = random.choice(30, 3, replace=False)
        X, filled = put_rows(X, filled, slots, sparse(np.ones((3, 9))))
        assert len(X.indices) <= 2 * 9 * 30
    assert rows_nbytes(X) == sum(array.nbytes for array in X[:4])


def test_taken_rows_survive_a_rewritten_heap():
    X, filled = put_rows(
        grown_rows(sparse(np.zeros((0, 4))), 4), 0, np.arange(4), sparse(np.eye(4))
    )
    view, heap = take_rows(X, slice(0, 2)), X.values
    for _ in range(9):
        X, filled = put_rows(X, filled, np.array([2, 3]), sparse(np.full((2, 4), 7.0)))
    assert X.values is not heap
    np.testing.assert_array_equal(dense(view), np.eye(4)[:2])


def test_grows_wider_with_the_rows():
    X, _ = put_rows(sparse(np.zeros((2, 3))), 0, np.array([1]), sparse(np.ones((1, 8))))
    assert X.width == 8
