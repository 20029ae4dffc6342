"""Bins of numbers, codes and missing values."""

import numpy as np
import pytest

from wolfstream.solver.trees.binning import BINS, EDGES, OTHER, binned, bins_of

NUMBER, CODE = np.array([False]), np.array([True])


def bins(values: list[float], others: list[float] | None = None) -> list[int]:
    X = np.array(values)[:, None]
    made = bins_of(X, NUMBER)
    return binned(made, X if others is None else np.array(others)[:, None]).ravel().tolist()


def test_few_numbers_have_a_bin_each() -> None:
    assert bins([3.0, 1.0, 2.0, 1.0]) == [3, 1, 2, 1]


def test_numbers_between_are_with_the_nearer_one() -> None:
    assert bins([0.0, 1.0], [-9.0, 0.4, 0.6, 9.0]) == [1, 1, 2, 2]


def test_missing_numbers_have_the_first_bin() -> None:
    assert bins([np.nan, 5.0, np.nan]) == [0, 1, 0]
    assert bins([np.nan, np.nan], [1.0, np.nan]) == [1, 0]


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_many_numbers_have_bins_of_equal_counts(scale: float) -> None:
    X = scale * np.random.default_rng(0).normal(size=(8192, 1))
    counts = np.bincount(binned(bins_of(X, NUMBER), X).ravel(), minlength=BINS)
    assert counts[0] == 0
    assert (counts[1:] > 0).all()
    assert counts[1:].max() < 2 * 8192 / EDGES


def test_bins_keep_the_order_of_numbers() -> None:
    random = np.random.default_rng(1)
    X = np.round(random.standard_cauchy(size=(3000, 1)), 1)
    order = np.argsort(X.ravel(), kind="stable")
    assert (np.diff(binned(bins_of(X, NUMBER), X).ravel()[order].astype(int)) >= 0).all()


def test_a_value_that_half_of_the_rows_have_takes_one_bin() -> None:
    X = np.random.default_rng(2).normal(size=(4000, 1))
    X[::2] = 0.0
    counts = np.bincount(binned(bins_of(X, NUMBER), X).ravel(), minlength=BINS)
    assert counts.max() >= 2000
    assert (counts > 0).sum() > 20


def test_neighbouring_floats_are_told_apart() -> None:
    assert bins([1.0, np.nextafter(1.0, 2.0)]) == [1, 2]


def test_frequent_codes_have_bins_and_others_share_one() -> None:
    X = np.array([7.0] * 5 + [3.0] * 9 + [100.0, np.nan])[:, None]
    made = bins_of(X, CODE)
    assert binned(made, np.array([[3.0], [7.0], [100.0], [5.0], [np.nan]])).ravel().tolist() == [
        1,
        2,
        OTHER,
        OTHER,
        0,
    ]


def test_the_most_frequent_of_many_codes_have_bins() -> None:
    codes = np.repeat(np.arange(100.0), np.arange(100) + 5)
    of_codes = binned(bins_of(codes[:, None], CODE), np.arange(100.0)[:, None]).ravel()
    assert (of_codes == OTHER).sum() == 100 - EDGES
    assert len(set(of_codes.tolist())) == EDGES + 1


def test_a_row_has_the_same_bins_alone() -> None:
    X = np.random.default_rng(3).normal(size=(500, 4))
    X[::7, 2] = np.nan
    made = bins_of(X, np.zeros(4, np.bool_))
    alone = np.concatenate([binned(made, X[i : i + 1]) for i in range(len(X))])
    assert np.array_equal(alone, binned(made, X))
