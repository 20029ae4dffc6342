"""Products of sparse rows: right against scipy's, for blocks and features of all kinds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import random as random_matrix

from tests.solver.streams import sparse
from wolfstream.solver.compiled import compiled
from wolfstream.solver.rows import sparse_product as module
from wolfstream.solver.rows.matrix import sparse_from_csr, take_rows
from wolfstream.solver.rows.sparse_product import index_block, sparse_product

# As machine code; for callers from Python it is a Python function.
square_distance = compiled(module.square_distance)

DTYPES = {"float32": (np.float32, 1e-5), "float64": (np.float64, 1e-13)}


def rows_of(matrix):
    matrix = matrix.tocsr()
    return sparse_from_csr(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1])


def products(X, Z, dtype, scale=1.0, omitted=(None, None), terms=(None, None)):
    n, m = len(X.start), len(Z.start)
    without_x, without_z = (
        np.zeros(k, np.bool_) if o is None else o for k, o in zip((n, m), omitted, strict=True)
    )
    of_x, of_z = (
        np.zeros(k, dtype) if t is None else t for k, t in zip((n, m), terms, strict=True)
    )
    out = np.full((n, m), np.nan, dtype)
    index = index_block(X, without_x, scale, out)
    sparse_product(index, of_x, Z, without_z, scale, of_z, out)
    return out


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.values(), ids=DTYPES)
@given(
    n=st.integers(0, 70),
    m=st.integers(0, 40),
    width=st.sampled_from([1, 5, 300, 40_000, 2**31 - 1]),
    density=st.floats(0.0, 1.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_are_those_of_scipy(dtype, tolerance, n, m, width, density, seed):
    random = np.random.default_rng(seed)
    narrow = min(width, 60)
    values = [random_matrix(k, narrow, density, random_state=random) for k in (n, m)]
    # The same rows, with their features spread over the whole width.
    place = np.sort(random.choice(min(width, 10**6), narrow, replace=False))
    place = place * (width // min(width, 10**6))
    X, Z = (
        rows_of(v)._replace(indices=place[rows_of(v).indices].astype(np.int32), width=width)
        for v in values
    )
    expected = 4.0 * (values[0] @ values[1].T).toarray()
    np.testing.assert_allclose(products(X, Z, dtype, 2.0), expected, rtol=0, atol=60 * tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.values(), ids=DTYPES)
def test_with_frequent_and_rare_features_side_by_side(dtype, tolerance):
    """Texts: a few features in nearly every row, most in a row or two."""
    random = np.random.default_rng(0)
    share = 1.0 / (1.0 + np.arange(3000))
    words = np.where(random.random((300, 3000)) < share, random.standard_normal((300, 3000)), 0.0)
    X = sparse(words)
    index = index_block(X, np.zeros(300, np.bool_), 1.0, np.empty(0, dtype))
    assert len(index.line) > 5
    assert len(index.row) > 500
    np.testing.assert_allclose(products(X, X, dtype), words @ words.T, rtol=0, atol=100 * tolerance)


def test_omitted_rows_count_as_zero():
    X, Z = np.arange(12.0).reshape(4, 3), np.arange(15.0).reshape(5, 3)
    omitted = np.array([False, True, False, False]), np.array([True, False, False, False, False])
    terms = np.array([1.0, 2.0, 3.0, 4.0]), 10.0 * np.arange(5.0)
    expected = X @ Z.T
    expected[1], expected[:, 0] = 0.0, 0.0
    expected += terms[0][:, None] + terms[1]
    result = products(sparse(X), sparse(Z), np.float64, omitted=omitted, terms=terms)
    np.testing.assert_array_equal(result, expected)


def test_features_beyond_those_of_the_block_do_not_count():
    X, Z = np.array([[1.0, 2.0]]), np.array([[3.0, 4.0, 5.0], [0.0, 0.0, 6.0]])
    assert products(sparse(X), sparse(Z), np.float64).tolist() == [[11.0, 0.0]]
    assert products(sparse(Z), sparse(X), np.float64).tolist() == [[11.0], [0.0]]


def test_a_block_of_few_features_of_many_takes_little_memory():
    X = sparse_from_csr([1.0, 2.0, 3.0], [0, 5, 2**31 - 2], [0, 2, 3], 2**31 - 1)
    index = index_block(X, np.zeros(2, np.bool_), 1.0, np.empty(0))
    assert sum(array.nbytes for array in index if isinstance(array, np.ndarray)) < 10**6
    assert products(X, X, np.float64).tolist() == [[5.0, 0.0], [0.0, 9.0]]


@given(seed=st.integers(0, 2**32 - 1), root=st.floats(1e-3, 1e3))
def test_distances_are_taken_from_differences(seed, root):
    random = np.random.default_rng(seed)
    X = np.where(random.random((6, 8)) < 0.5, 1e9 + random.integers(0, 9, (6, 8)), 0.0)
    rows, others = sparse(X), take_rows(sparse(X), slice(None, None, -1))
    for i in range(6):
        for j in range(6):
            expected = np.sum((root * (X[i] - X[5 - j])) ** 2)
            assert square_distance(rows, i, others, j, root) == pytest.approx(expected, rel=1e-12)
