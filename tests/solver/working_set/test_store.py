"""Stored samples: slots, and the kernel values among them."""

import numpy as np
import pytest

from tests.solver.streams import FLOAT64, dense, sparse
from wolfstream.solver.kernels.blocks import kernel_block
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.precision import FINEST
from wolfstream.solver.kernels.prepared_rows import prepare_rows
from wolfstream.solver.rows.matrix import n_nonzeros, origin_of
from wolfstream.solver.rows.slots import rows_nbytes
from wolfstream.solver.working_set.store import FREE, Bounds, SampleStore

LINEAR = Kernel("linear")
ROOMY = Bounds(None, 1 << 30)


def rows_of(X):
    return prepare_rows(LINEAR, X, origin_of(X), FLOAT64)


def add(store, X, codes, chosen):
    """Store the chosen rows of a block the way a learner does."""
    rows = rows_of(X)
    against_stored = kernel_block(LINEAR, rows, store.used_rows())
    block = np.concatenate([against_stored, kernel_block(LINEAR, rows, rows)], axis=1)
    numbers = np.arange(len(codes))
    return store.add(rows, np.array(codes), block, np.array(chosen), np.ones(len(codes)), numbers)


def store_like(like, bounds):
    return SampleStore(LINEAR, np.zeros(3), FINEST, like, bounds)


@pytest.fixture
def random():
    return np.random.default_rng(80)


@pytest.fixture
def store(random):
    store = store_like(rows_of(np.zeros((1, 3))), ROOMY)
    add(store, random.standard_normal((6, 3)), [0, 1, 0, 1, 2, 0], [0, 1, 2, 3, 5])
    return store


def assert_gram_is_right(store):
    held = np.flatnonzero(store.code[: store.used] != FREE)
    X = store.rows.exact[held]
    np.testing.assert_allclose(
        store.gram.kept.values[np.ix_(held, held)], X @ X.T, rtol=0, atol=1e-12
    )


class TestSlots:
    def test_are_given_in_order(self, store):
        assert store.code[: store.used].tolist() == [0, 1, 0, 1, 0]
        assert store.entered[: store.used].tolist() == [0, 1, 2, 3, 4]
        assert store.size == store.used == store.added == 5
        assert store.slots_of_class(0).tolist() == [0, 2, 4]
        assert_gram_is_right(store)

    def test_when_freed_are_the_first_to_be_used_again(self, store, random):
        store.evict(np.array([1, 3]))
        assert (store.size, store.used) == (3, 5)
        assert store.slots_of_class(1).tolist() == []
        slots = add(store, random.standard_normal((4, 3)), [2, 2, 0, 1], [0, 2, 3])
        assert slots.tolist() == [1, 3, 5]
        assert store.code[: store.used].tolist() == [0, 2, 0, 0, 0, 1]
        assert store.entered[: store.used].tolist() == [0, 5, 2, 6, 4, 7]
        assert (store.size, store.used, store.added) == (6, 6, 8)
        assert_gram_is_right(store)

    def test_freed_ones_left_over_stay_free(self, store, random):
        store.evict(np.array([0, 2, 4]))
        add(store, random.standard_normal((1, 3)), [1], [0])
        assert store.code[: store.used].tolist() == [1, 1, FREE, 1, FREE]
        assert_gram_is_right(store)

    def test_outlive_growth(self, store, random):
        before = store.rows.exact[:5].copy()
        for _ in range(30):
            add(store, random.standard_normal((20, 3)), [0] * 20, list(range(20)))
        assert store.size == 605
        np.testing.assert_array_equal(store.rows.exact[:5], before)
        assert_gram_is_right(store)

    def test_never_take_more_room_than_the_bound(self, random):
        like = rows_of(np.zeros((1, 3)))
        store = store_like(like, ROOMY._replace(max_size=70))
        for _ in range(7):
            add(store, random.standard_normal((10, 3)), [0] * 10, list(range(10)))
        assert len(store.gram.kept.values) == len(store.code) == 70


def test_releasing_leaves_the_rows_that_others_hold_untouched(store, random):
    published = store.used_rows()
    before = [field.copy() for field in published]
    store.evict(np.array([0, 1, 2]))
    add(store, random.standard_normal((3, 3)), [0, 0, 0], [0, 1, 2])
    for field, copy in zip(published, before, strict=True):
        np.testing.assert_array_equal(field, copy)


class TestSparse:
    def new_rows(self, random, n):
        return sparse(np.where(random.random((n, 30)) < 0.3, random.random((n, 30)), 0.0))

    def turned_over(self, random, rounds, max_size=40):
        """A store at its bound, some of whose samples are replaced in each round."""
        store = store_like(rows_of(self.new_rows(random, 1)), Bounds(max_size, 1 << 30))
        add(store, self.new_rows(random, max_size), [0] * max_size, list(range(max_size)))
        for _ in range(rounds):
            yield store
            evicted = random.choice(max_size, 5, replace=False)
            store.evict(evicted)
            add(store, self.new_rows(random, 8), [0] * 8, [0, 2, 3, 5, 7])
        yield store

    def test_rows_and_gram_belong_together_after_many_replacements(self, random):
        for store in self.turned_over(random, 60):
            X = dense(store.rows.exact)
            np.testing.assert_allclose(store.gram.kept.values, X @ X.T, rtol=0, atol=1e-12)

    def test_memory_at_the_bound_is_constant(self, random):
        sizes = [store.nbytes for store in self.turned_over(random, 200)]
        entries = 12 * 30 * 40
        assert max(sizes[50:]) <= max(sizes[:50]) + entries // 4
        rest = store_bytes_without_heap(40)
        assert max(sizes) <= rest + 2 * entries

    def test_counts_the_heap(self, random):
        store = store_like(rows_of(self.new_rows(random, 1)), Bounds(10, 1 << 30))
        before = store.nbytes
        rows = self.new_rows(random, 5)
        add(store, rows, [0] * 5, list(range(5)))
        assert store.nbytes - before >= 12 * n_nonzeros(rows)
        assert store.nbytes > rows_nbytes(store.rows.exact)

    def test_the_callers_heap_is_not_kept(self, random):
        rows = self.new_rows(random, 6)
        store = store_like(rows_of(rows), ROOMY)
        add(store, rows, [0] * 6, [1, 4])
        assert not np.shares_memory(store.rows.exact.values, rows.values)
        assert len(store.rows.exact.values) < 4 * n_nonzeros(rows)

    def test_published_rows_stay_as_they_were(self, random):
        published = []
        for store in self.turned_over(random, 40):
            rows = store.used_rows()
            published.append((rows, dense(rows.exact), rows.fast.copy()))
        for rows, exact, fast in published[:-1]:
            held = rows.exact.stop > rows.exact.start
            np.testing.assert_array_equal(dense(rows.exact)[held], exact[held])
            np.testing.assert_array_equal(rows.fast, fast)


def store_bytes_without_heap(capacity):
    """Gram matrix, its diagonal, codes, order of entry, extents, terms and flags."""
    return 8 * capacity * capacity + (5 * 8 + 8 + 1) * capacity
