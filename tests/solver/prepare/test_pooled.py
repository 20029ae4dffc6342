"""Moments of values that were divided among several."""

import numpy as np
import pytest

from wolfstream.solver.prepare.scale import COMPRESSED, HORIZON, no_moments, pooled, standardise


def moments_of(X):
    moments = no_moments(X.shape[1])
    standardise(moments, X, COMPRESSED)
    return moments


def test_they_are_those_of_all_values():
    X = np.random.default_rng(5).normal(3.0, 2.0, (900, 4))
    found = pooled([moments_of(X[:100]), moments_of(X[100:]), no_moments(4)])
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found.square, X.var(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(found.weight, 900.0)


@pytest.mark.parametrize("unit", [1e-250, 1e250])
def test_they_have_the_unit_of_the_values(unit):
    X = np.random.default_rng(5).normal(3.0, 2.0, (900, 4))
    whole = pooled([no_moments(4), moments_of(X[:100] * unit), moments_of(X[100:] * unit)])
    np.testing.assert_allclose(whole.mean / whole.unit / unit, X.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(np.sqrt(whole.square) / whole.unit / unit, X.std(axis=0), rtol=1e-9)


def test_no_more_values_count_than_ever_do():
    full = no_moments(1)._replace(weight=np.array([HORIZON]))
    assert pooled([full, full]).weight == HORIZON


def test_a_column_without_values_has_none():
    found = pooled([no_moments(2), no_moments(2)])
    assert not any(array.any() for array in found)
