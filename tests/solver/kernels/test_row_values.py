"""Kernel values of single rows, which do not depend on the rows that come with them."""

import numpy as np
import pytest

from wolfstream.solver.compiled import compiled
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.kernels.prepared_rows import prepare_rows, take
from wolfstream.solver.kernels.row_values import WIDEST, exp32, row_values, stored_rows

FLOAT32 = np.dtype(np.float32)
TOLERANCE = 1e-4


@compiled
def _values(stored, x, own, out):
    row_values(stored, x, own, out)


@compiled
def _exponentials(x, out):
    for i in range(len(x)):
        out[i] = exp32(x[i])


def prepared(X, gamma):
    return prepare_rows(Kernel("rbf", gamma), X, X[0], FLOAT32, TOLERANCE)


def values_of(rows, origin, gamma, x):
    stored = stored_rows(Kernel("rbf", gamma), rows, origin, TOLERANCE)
    out, own = np.empty(len(rows.far), np.float32), np.empty(len(x) + 2, np.float32)
    _values(stored, x, own, out)
    return out


@pytest.mark.parametrize("columns", [1, 3, 4, 22, WIDEST])
def test_are_those_of_differences(columns):
    X = np.random.default_rng(columns).normal(size=(1100, columns)) + 100.0
    gamma = 0.5 / columns
    found = values_of(prepared(X, gamma), X[0], gamma, X[7] + 0.1)
    square = ((X - X[7] - 0.1) ** 2).sum(axis=1)
    np.testing.assert_allclose(found, np.exp(-gamma * square), rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("far", ["stored", "new"])
def test_of_far_rows_are_those_of_differences(far):
    X = np.random.default_rng(0).normal(size=(200, 3))
    x = X[5] + 0.1
    X[190:] += 1e6
    x = X[195] + 0.1 if far == "new" else x
    rows = prepared(X, 0.3)
    assert rows.far[190:].all()
    expected = np.exp(-0.3 * ((X - x) ** 2).sum(axis=1))
    np.testing.assert_allclose(values_of(rows, X[0], 0.3, x), expected, rtol=1e-4, atol=1e-6)


def test_do_not_depend_on_how_operands_are_stored():
    X = np.random.default_rng(1).normal(size=(300, 5))
    rows = prepared(X, 0.2)
    roomy = rows._replace(fast=np.asfortranarray(rows.fast))
    once, again = (values_of(take(one, slice(0, 250)), X[0], 0.2, X[9]) for one in (rows, roomy))
    np.testing.assert_array_equal(once, again)


def test_of_stored_rows_are_read_where_these_lie():
    X = np.random.default_rng(4).normal(size=(20, 3))
    rows = prepared(X, 0.2)
    for stored in (1, 20):
        roomy = rows._replace(fast=np.asfortranarray(rows.fast[:stored]))
        for n in {1, stored - 1 or 1, stored}:
            part = take(roomy, slice(0, n))
            operand = stored_rows(Kernel("rbf", 0.2), part, X[0], TOLERANCE).operand
            assert operand.shape[0] == 5
            assert np.shares_memory(operand, roomy.fast)
            np.testing.assert_array_equal(operand[:, :n], rows.fast[:n].T)


def test_wide_sparse_and_other_kernels_are_left_to_blocks():
    X = np.random.default_rng(2).normal(size=(5, WIDEST + 1))
    assert stored_rows(Kernel("rbf", 1.0), prepared(X, 1.0), X[0], TOLERANCE) is None
    linear = Kernel("linear", 1.0)
    narrow = prepare_rows(linear, X[:, :3], X[0, :3], FLOAT32, TOLERANCE)
    assert stored_rows(linear, narrow, X[0, :3], TOLERANCE) is None


def test_exponentials_are_exact_to_a_few_units():
    x = -np.exp(np.linspace(-18.0, np.log(86.0), 20_001)).astype(np.float32)
    x[0] = 0.0
    out = np.empty_like(x)
    _exponentials(x, out)
    np.testing.assert_allclose(out, np.exp(x.astype(np.float64)), rtol=3e-7)
    _exponentials(np.array([1.0, -1e30], np.float32), out[:2])
    assert out[0] == 1.0
    assert out[1] < 1e-37
