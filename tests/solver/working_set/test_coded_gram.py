"""Kernel values of one byte each: their layout, and sets that keep them."""

import numpy as np
import pytest

from tests.solver.streams import clusters
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.compiled import compiled
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.working_set.code_cells import (
    cell_words,
    decode_row,
    decode_value,
    encode,
    encode_row,
)
from wolfstream.solver.working_set.coded_gram import (
    CodedGram,
    code_bytes,
    may_be_coded,
    most_coded,
)
from wolfstream.solver.working_set.gram import Gram
from wolfstream.solver.working_set.learner import WorkingSet

RBF = Kernel("rbf", gamma=0.3)


@compiled
def write_row(words, p, values, count):
    encode_row(words, p, values, count)
    encode(words, p, p, 1.0)


@compiled
def read_row(words, p, used, row):
    decode_row(words, p, used, row)


@compiled
def read_one(words, p, m):
    return decode_value(words, p, m)


def matrix(seed: int, n: int) -> np.ndarray:
    values = np.random.default_rng(seed).random((n, n)).astype(np.float32)
    values = np.tril(values, -1)
    return values + values.T + np.eye(n, dtype=np.float32)


def rows_of(words: np.ndarray, n: int) -> np.ndarray:
    row, rows = np.empty(-(-n // 8) * 8, np.float32), []
    for p in range(n):
        read_row(words, p, n, row)
        rows.append(row[:n].copy())
    return np.array(rows)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 71])
def test_rows_are_off_by_half_a_level(n):
    values, words = matrix(n, n), np.full(cell_words(n), 2**64 - 1, np.uint64)
    for p in range(n):
        write_row(words, p, values[p], p)
    rows = rows_of(words, n)
    np.testing.assert_allclose(rows, values, rtol=0, atol=1.0 / 510 + 1e-6)
    np.testing.assert_array_equal(rows, rows.T)
    np.testing.assert_array_equal(rows.diagonal(), 1.0)
    assert read_one(words, n - 1, 0) == read_one(words, 0, n - 1) == rows[0, n - 1]


@pytest.mark.parametrize("p", [0, 5, 7, 8, 33, 69, 70])
def test_a_row_that_is_written_again_replaces_no_other(p):
    n = 71
    values, words = matrix(1, n), np.zeros(cell_words(n), np.uint64)
    for q in range(n):
        write_row(words, q, values[q], q)
    before, other = rows_of(words, n), matrix(2, n)[p]
    write_row(words, p, other, n)
    after = rows_of(words, n)
    others = np.arange(n) != p
    np.testing.assert_array_equal(after[np.ix_(others, others)], before[np.ix_(others, others)])
    np.testing.assert_allclose(after[p], other, rtol=0, atol=1.0 / 510 + 1e-6)
    np.testing.assert_array_equal(after[:, p], after[p])


def test_bytes_of_codes():
    assert code_bytes(5000) == 625 * 626 // 2 * 64 < 12_550_000
    for slots in (8, 800, 16_384):
        assert most_coded(code_bytes(slots)) == slots
        assert most_coded(code_bytes(slots) - 1) == slots - 8


def learned(compact: bool, size: int, max_size: int | None = None) -> WorkingSet:
    X, codes = clusters(3, 600)
    learner = WorkingSet(RBF, max_size=max_size, compact=compact)
    for start in range(0, len(codes), size):
        learner.absorb(X[start : start + size], codes[start : start + size])
    return learner


def kernel_matrix(learner: WorkingSet) -> Float64Array:
    X = learner.store.used_rows().exact
    return np.exp(-RBF.gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("max_size", [None, 70])
def test_the_codes_of_a_set_are_those_of_its_kernel_values(size, max_size):
    learner = learned(True, size, max_size)
    gram, held = learner.store.gram, learner.store.occupied_slots()
    assert isinstance(gram, CodedGram)
    rows = rows_of(gram.codes, learner.store.used)[np.ix_(held, held)]
    np.testing.assert_allclose(
        rows, kernel_matrix(learner)[np.ix_(held, held)], rtol=0, atol=1.0 / 510 + 1e-5
    )
    for place, slot in enumerate(gram.kept.column_in):
        if slot in held:
            np.testing.assert_array_equal(gram.kept.values[place, held], rows[held == slot][0])


def test_a_set_of_codes_is_close_to_one_of_floats():
    coded, exact = learned(True, 64), learned(False, 64)
    assert isinstance(exact.store.gram, Gram)
    assert coded.store.used == pytest.approx(exact.store.used, rel=0.05)
    assert coded.problems[0].q[0] == pytest.approx(exact.problems[0].q[0], rel=0.02)
    assert coded.store.gram.nbytes < exact.store.gram.nbytes / 5


@pytest.mark.parametrize("max_size", [None, 70])
def test_a_restored_set_goes_on_bit_for_bit(max_size):
    learner, (X, codes) = learned(True, 64, max_size), clusters(4, 200)
    one, other = (WorkingSet(RBF, max_size=max_size, compact=True) for _ in range(2))
    for restored in (one, other):
        restored.restore(learner.state())
    for start in range(0, 200, 20):
        part = slice(start, start + 20)
        first, second = one.absorb(X[part], codes[part]), other.absorb(X[part], codes[part])
        np.testing.assert_array_equal(first.margin, second.margin)


def test_only_rbf_with_enough_of_a_ridge_is_coded():
    def coded(kernel: Kernel, C: float, weight: float = 1.0) -> bool:
        learner = WorkingSet(kernel, C, compact=True, largest_weight=weight)
        return may_be_coded(kernel, learner.precision, learner.ridges.least(weight))

    assert coded(RBF, 1.0)
    assert coded(RBF, 2.0)
    assert not coded(RBF, 2.1)
    assert not coded(RBF, 1.0, 10.0)
    assert not coded(Kernel("linear"), 1.0)
