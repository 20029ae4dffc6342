"""Columns of different kinds: widths, categories, missing values, views and states."""

import numpy as np
import pytest

from wolfstream.solver.prepare.columns import (
    Layout,
    Preparation,
    encoded,
    layout_of,
    own_codes,
    prepared,
)
from wolfstream.solver.prepare.scale import COMPRESSED, no_moments, standardise

SLOTS = 32
MIXED = layout_of(["number", "category", "number"])
CATEGORY = layout_of(["category"])
RANDOM = np.random.default_rng(0)


def rows(n):
    X = RANDOM.normal(size=(n, 3))
    X[:, 1] = RANDOM.integers(0, 100, n)
    X[RANDOM.random((n, 3)) < 0.1] = np.nan
    return X


def test_numbers_alone_are_what_standardising_makes_of_them():
    X = RANDOM.normal(size=(300, 4))
    preparation = Preparation(layout_of(["number"] * 4))
    np.testing.assert_array_equal(preparation.absorb(X), standardise(no_moments(4), X, COMPRESSED))


def test_prepared_rows_lie_one_after_another():
    """So that sums over them round alike before and after a restart."""
    X = np.random.default_rng(0).standard_normal((5, 3))
    assert Preparation(layout_of(["number"] * 3)).absorb(X).flags.c_contiguous


def test_a_category_has_one_column_of_its_slots():
    own = own_codes(SLOTS)
    columns = encoded(CATEGORY, np.array([[0.0], [own - 1.0], [np.nan], [1e6]]))
    np.testing.assert_array_equal(columns[:2], np.eye(SLOTS)[[0, own - 1]])
    assert np.isnan(columns[2]).all()
    assert columns[3].sum() == columns[3, own:].sum() == 1.0


def test_late_categories_spread_over_the_shared_slots():
    own = own_codes(SLOTS)
    share = encoded(CATEGORY, np.arange(own, 100_000.0)[:, None]).mean(axis=0)
    assert share[:own].max() == 0.0
    assert share[own:].min() > 0.9 / (SLOTS - own)
    assert share[own:].max() < 1.1 / (SLOTS - own)


@pytest.mark.parametrize("indicators", [(), (0, 1, 2)])
def test_the_width_is_that_of_the_layout(indicators):
    layout = MIXED._replace(indicators=indicators)
    assert layout.width == 2 + SLOTS + len(indicators)
    Z = Preparation(layout).absorb(rows(100))
    assert Z.shape == (100, layout.width)
    assert np.isfinite(Z).all()


def test_indicators_say_what_is_missing():
    X = rows(50)
    columns = encoded(MIXED._replace(indicators=(0, 1, 2)), X)[:, -3:]
    np.testing.assert_array_equal(columns, np.isnan(X))


@pytest.mark.parametrize("code", [-1.0, 0.5, np.inf, 2.0**60])
def test_what_is_no_code_is_refused_before_anything_is_taken_in(code):
    preparation = Preparation(MIXED)
    X = rows(20)
    X[7, 1] = code
    before = preparation.state()
    with pytest.raises(ValueError, match="code"):
        preparation.absorb(X)
    for name, array in preparation.state().items():
        np.testing.assert_array_equal(array, before[name])


def test_a_view_and_a_restored_state_prepare_alike():
    X = rows(200)
    preparation, twin = Preparation(MIXED), Preparation(MIXED)
    preparation.absorb(X[:150])
    twin.restore(preparation.state())
    asked = prepared(preparation.view(), X[150:151])
    np.testing.assert_array_equal(asked, preparation.absorb(X[150:151]))
    np.testing.assert_array_equal(asked, twin.absorb(X[150:151]))


def test_categories_side_by_side_are_what_each_is_by_itself():
    """Also where some that follow each other have as many slots, and others do not."""
    slots = (4, 4, 2, 4, 32, 32)
    X = np.random.default_rng(3).integers(0, 90, (50, 6)).astype(np.float64)
    X[::7, 1] = X[::5, 5] = np.nan
    alone = [encoded(Layout((), (0,), (k,)), X[:, [j]]) for j, k in enumerate(slots)]
    together = encoded(Layout((), (0, 1, 2, 3, 4, 5), slots), X)
    np.testing.assert_array_equal(together, np.concatenate(alone, axis=1))
    assert together.flags.c_contiguous
