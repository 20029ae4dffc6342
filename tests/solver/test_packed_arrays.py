"""Tuples of arrays that compiled code reads from words."""

from typing import NamedTuple

import numba
import numpy as np
import pytest

from wolfstream.solver.compiled import compiled
from wolfstream.solver.packed_arrays import PackedTuple, empty_words, pack, type_key, unpack


class Inner(NamedTuple):
    a: np.ndarray
    flag: bool
    factor: float


class Outer(NamedTuple):
    first: Inner
    matrix: np.ndarray
    second: Inner
    count: int


def outer(seed, flag):
    random = np.random.default_rng(seed)
    parts = [Inner(random.normal(size=3 + k), flag, 1.5 + k) for k in range(2)]
    return Outer(parts[0], random.normal(size=(2, 3)).astype(np.float32), parts[1], 7)


KIND = numba.typeof(outer(0, flag=True))


@compiled
def put(words, value):
    pack(words, value)


@compiled
def total(words):
    one = unpack(words, KIND)
    found = float(one.count)
    for part in (one.first, one.second):
        if part.flag:
            for i in range(len(part.a)):
                found += part.factor * part.a[i]
    for i in range(one.matrix.shape[0]):
        for k in range(one.matrix.shape[1]):
            found += one.matrix[i, k]
    return found


def test_are_read_as_they_were_held():
    for seed, flag in ((1, True), (2, False)):
        one, words = outer(seed, flag), empty_words()
        put(words, one)
        sums = sum(part.factor * part.a.sum() for part in (one.first, one.second) if part.flag)
        assert words[0] == type_key(KIND)
        np.testing.assert_allclose(total(words), 7.0 + sums + one.matrix.sum(), rtol=1e-6)


def test_show_what_has_changed_in_their_arrays():
    one, words = outer(3, flag=True), empty_words()
    put(words, one)
    before = total(words)
    one.first.a[0] += 2.0
    np.testing.assert_allclose(total(words), before + 3.0)


def test_another_type_has_another_key():
    words = empty_words()
    put(words, outer(0, flag=True)._replace(matrix=np.zeros((2, 3))))
    assert words[0] != type_key(KIND)


def test_a_packed_tuple_reads_the_present_arrays():
    packed = PackedTuple(KIND, put)
    one, other = outer(1, flag=True), outer(2, flag=True)
    assert total(packed.words((one,), lambda: one)) == pytest.approx(expected(one))
    one.matrix[:] = 3.0  # in place
    words = packed.words((one,), lambda: pytest.fail("it is still the same"))
    assert total(words) == pytest.approx(expected(one))
    assert total(packed.words((other,), lambda: other)) == pytest.approx(expected(other))


def test_a_packed_tuple_takes_no_other_type():
    wrong = outer(1, flag=True)._replace(matrix=np.zeros((3, 2), np.float32).T)
    with pytest.raises(TypeError, match="in the place of"):
        PackedTuple(KIND, put).words((wrong,), lambda: wrong)


def expected(one):
    return (
        7.0 + sum(part.factor * part.a.sum() for part in (one.first, one.second)) + one.matrix.sum()
    )
