"""The one door to the feature maps: all of them, on dense and on sparse rows."""

import numpy as np
import pytest

from tests.solver.streams import KERNELS, sparse, thin_clusters
from wolfstream.solver.asset.features import (
    dimension_of,
    expansion,
    linear_values,
    make_map,
    map_arrays,
    map_from_arrays,
    map_nbytes,
    takes_sparse,
    transform,
    transform_all,
    widened,
)
from wolfstream.solver.asset.fourier import fourier_features
from wolfstream.solver.asset.identity import IdentityMap, transform_present
from wolfstream.solver.asset.nystrom import nystrom_features
from wolfstream.solver.rows.matrix import take_rows

CASES = [
    ("fourier", KERNELS["rbf"]),
    *(("nystrom", kernel) for kernel in KERNELS.values()),
    ("identity", KERNELS["linear"]),
]
for_each_map = pytest.mark.parametrize(
    ("kind", "kernel"),
    CASES,
    ids=[f"{kind}-{kernel.type}-{kernel.degree}" for kind, kernel in CASES],
)
for_both = pytest.mark.parametrize("rows", [np.asarray, sparse], ids=["dense", "sparse"])


X = thin_clusters(320, 50)[0]


@for_both
@for_each_map
def test_features_are_float64_rows_of_the_stated_width(kind, kernel, rows):
    features = widened(make_map(kind, kernel, rows(X), 10), rows(X))
    V = transform(features, rows(X))
    assert V.shape == (50, dimension_of(features))
    assert V.dtype == np.float64
    assert V.flags.c_contiguous
    assert takes_sparse(features) == (rows is sparse)


def test_each_kind_is_its_own_map():
    rbf = KERNELS["rbf"]
    features = make_map("fourier", rbf, X, 10, seed=3)
    np.testing.assert_array_equal(transform(features, X), fourier_features(features, X))
    features = make_map("nystrom", rbf, X, 10)
    assert len(features.landmarks.far) == 10
    np.testing.assert_array_equal(transform(features, X), nystrom_features(features, X))
    np.testing.assert_array_equal(transform(make_map("identity", KERNELS["linear"], X, 10), X), X)


@for_both
@for_each_map
def test_linear_values_are_products_with_the_features(kind, kernel, rows):
    features = widened(make_map(kind, kernel, rows(X), 10), rows(X))
    gamma = np.random.default_rng(0).standard_normal((3, dimension_of(features)))
    values = linear_values(features, expansion(features, gamma), rows(X))
    expected = transform(features, rows(X)) @ gamma.T
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@for_both
@for_each_map
def test_a_map_comes_back_from_its_arrays(kind, kernel, rows):
    features = widened(make_map(kind, kernel, rows(X), 10, seed=5), rows(X))
    arrays = map_arrays(features)
    assert map_nbytes(features) >= sum(array.nbytes for array in arrays.values() if array.ndim == 2)
    for array in arrays.values():
        array.flags.writeable = False
    again = map_from_arrays(kind, kernel, 5, arrays)
    np.testing.assert_array_equal(transform(again, rows(X)), transform(features, rows(X)))
    assert map_from_arrays(kind, kernel, 5, {}) is None


@for_both
@for_each_map
def test_many_rows_are_transformed_in_blocks(kind, kernel, rows):
    many = rows(thin_clusters(321, 600)[0])
    features = widened(make_map(kind, kernel, many, 10), many)
    np.testing.assert_allclose(
        transform_all(features, many), transform(features, many), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize(
    ("kind", "kernel", "message"),
    [
        (
            "fourier",
            "linear",
            "Fourier features exist for the rbf kernel only; use nystrom for linear",
        ),
        ("fourier", "cubic", "use nystrom for polynomial"),
        ("identity", "rbf", "identity features exist for the linear kernel only, not for rbf"),
        ("cosine", "rbf", "it must be one of fourier, nystrom, identity"),
    ],
)
def test_features_that_the_kernel_does_not_have(kind, kernel, message):
    with pytest.raises(ValueError, match=message):
        make_map(kind, KERNELS[kernel], X, 10)


@for_each_map
def test_rows_of_the_other_kind_are_refused(kind, kernel):
    for first, other in ((X, sparse(X)), (sparse(X), X)):
        features = make_map(kind, kernel, first, 10)
        with pytest.raises(TypeError, match="sparse"):
            transform(features, other)


class TestIdentityOfSparseRows:
    linear = KERNELS["linear"]

    def test_grows_with_the_largest_feature_and_a_quarter_in_advance(self):
        features = make_map("identity", self.linear, sparse(X), 10)
        assert dimension_of(features) == 0
        for reach in (3, 40, 41, 300):
            rows = np.zeros((2, reach))
            rows[1, -1] = 1.0
            grown = widened(features, sparse(rows, 10**9))
            assert reach <= dimension_of(grown) <= max(reach, 1.25 * dimension_of(features))
            assert widened(grown, sparse(rows)) is grown
            features = grown

    def test_leaves_out_features_beyond_its_width(self):
        features = widened(make_map("identity", self.linear, sparse(X), 10), sparse(X[:, :5]))
        np.testing.assert_array_equal(
            transform(features, sparse(X)), X[:, : dimension_of(features)]
        )
        gamma = np.ones((2, dimension_of(features)))
        np.testing.assert_allclose(
            linear_values(features, gamma, sparse(X)), transform(features, sparse(X)) @ gamma.T
        )

    def test_in_the_columns_present_are_all_its_features(self):
        features = widened(make_map("identity", self.linear, sparse(X), 10), sparse(X))
        for rows in (X[:0], X[:1], X[10:14], X):
            V, columns = transform_present(features, sparse(rows))
            np.testing.assert_array_equal(columns, np.flatnonzero(rows.any(axis=0)))
            whole = np.zeros((len(rows), dimension_of(features)))
            whole[:, columns] = V
            np.testing.assert_array_equal(whole, transform(features, sparse(rows)))

    def test_columns_beyond_the_width_are_not_present(self):
        V, columns = transform_present(IdentityMap(5, True), sparse(X))
        assert columns.tolist() == [0, 1, 2, 3, 4]
        np.testing.assert_array_equal(V, X[:, :5])

    def test_a_row_has_the_same_features_alone(self):
        features = widened(make_map("identity", self.linear, sparse(X), 10), sparse(X))
        alone = transform(features, take_rows(sparse(X), [7]))
        np.testing.assert_array_equal(alone[0], X[7, : alone.shape[1]])
