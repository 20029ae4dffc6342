"""Saved trees of which a part is not one that trees have are refused."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.service.forging import state_of
from wolfstream.service.heads.saved_arrays import WrongArrays, check_numbers_in
from wolfstream.service.heads.saved_trees import TREE_NUMBERS, check_trees

Arrays = dict[str, NDArray[Any]]
# Of trees, what their answers are sums of.
_SUMMED = ("leaf", "start")


@cache
def saved(name: str) -> tuple[Arrays, int, int | None]:
    plain, arrays = state_of(name)
    head = plain["heads"]["adaptive"]
    prefix = "adaptive.trees_"
    own = {key.removeprefix("adaptive."): a for key, a in arrays.items() if key.startswith(prefix)}
    return own, head["trees"], len(head["classes"]) if "classes" in head else None


def with_number(arrays: Arrays, name: str, place: Any, number: Any) -> Arrays:
    other = arrays[f"trees_{name}"].copy()
    other[place] = number
    return {**arrays, f"trees_{name}": other}


@pytest.mark.parametrize("name", ["trees", "trees of numbers", "trees of words"])
def test_what_was_saved_is_accepted(name: str) -> None:
    check_trees(*saved(name))


@pytest.mark.parametrize(
    ("name", "place", "number"),
    [
        ("forest_fresh_feature", (3, 0), 99),
        ("forest_fresh_feature", (0, 0), -1),
        ("forest_residual_feature", (0, 30), 1000),
        ("forest_fresh_child", (0, 0, 0), 0),  # it would ask for ever
        ("forest_fresh_child", (3, 5, 1), 4),
        ("forest_fresh_child", (3, 5, 1), 31),
        ("forest_residual_child", (0, 0, 1), -33),
        ("forest_fresh_leaf", (0, 0, 0), np.nan),
        ("forest_bins_edges", (0, 0), np.nan),
        ("forest_counts", 0, 60),
        ("forest_units", 1, 0.0),
        ("forest_unit", 0, 0.0),
        ("forest_unit", 0, np.nan),
        ("window_y", 0, np.inf),
        ("window_weight", 0, 0.0),
        ("window_X", (0, 0), np.inf),
        ("counts", 0, 10**9),
        ("counts", 1, 64),
        ("counts", 3, 10),
        ("counts", 4, 1),
        ("losses_next", 0, 5000),
    ],
)
@pytest.mark.parametrize("stream", ["trees", "trees of numbers"])
def test_a_number_that_cannot_be_is_refused(
    stream: str, name: str, place: Any, number: Any
) -> None:
    arrays, columns, classes = saved(stream)
    with pytest.raises(WrongArrays):
        check_trees(with_number(arrays, name, place, number), columns, classes)


def test_trees_of_targets_before_are_checked_as_others() -> None:
    arrays, columns, classes = saved("trees of numbers")
    for name, place, number in (
        ("forest_past_feature", (0, 0), columns + 8),
        ("forest_past_leaf", (0, 0, 0), np.inf),
    ):
        with pytest.raises(WrongArrays):
            check_trees(with_number(arrays, name, place, number), columns, classes)
    one = {**arrays, "trees_window_base": arrays["trees_window_base"][:, :1].copy()}
    with pytest.raises(WrongArrays):
        check_trees(one, columns, classes)


def test_a_class_that_is_not_known_is_refused() -> None:
    arrays, columns, classes = saved("trees")
    for label in (-1.0, 0.5, 3.0):
        with pytest.raises(WrongArrays):
            check_trees(with_number(arrays, "window_y", 0, label), columns, classes)


@pytest.mark.parametrize(
    ("name", "place", "number"),
    [
        ("forest_texts", 0, np.nan),
        ("forest_values_begin", 1, 10**9),
        ("forest_values_begin", -1, 0),
        ("forest_values_code", 0, np.nan),
        ("forest_values_value", (0, 0), np.inf),
        ("forest_values_start", (0, 0), np.nan),
        ("forest_fresh_feature", (0, 0), 40),
        ("window_words", (0, 0), -np.inf),
    ],
)
def test_values_of_words_that_cannot_be_are_refused(name: str, place: Any, number: Any) -> None:
    arrays, columns, classes = saved("trees of words")
    with pytest.raises(WrongArrays):
        check_trees(with_number(arrays, name, place, number), columns, classes)


def test_a_category_must_be_a_column_of_the_rows() -> None:
    arrays, columns, classes = saved("trees of words")
    changed = {**arrays, "trees_forest_columns": np.array([columns], np.int64)}
    with pytest.raises(WrongArrays):
        check_trees(changed, columns, classes)


@pytest.mark.parametrize("stream", ["trees", "trees of numbers", "trees of words"])
def test_each_array_is_needed_as_it_is(stream: str) -> None:
    arrays, columns, classes = saved(stream)
    for name, array in arrays.items():
        for other in (None, array.astype("f4"), array[..., None]):
            changed = {key: a for key, a in arrays.items() if key != name}
            if other is not None:
                changed[name] = other
            with pytest.raises(WrongArrays):
                check_trees(changed, columns, classes)


@pytest.mark.parametrize("columns", [None, 0, 257, True, "3"])
def test_columns_must_be_a_number(columns: object) -> None:
    arrays, _, classes = saved("trees")
    with pytest.raises(WrongArrays):
        check_trees(arrays, columns, classes)


@pytest.mark.parametrize(
    "name",
    [
        *("window_y", "window_base", "window_weight"),
        *(f"forest_{of}_{field}" for of in ("fresh", "residual", "past") for field in _SUMMED),
    ],
)
def test_numbers_whose_sums_overflow_are_refused(name: str) -> None:
    arrays, _, _ = saved("trees of numbers")
    check_numbers_in(arrays, TREE_NUMBERS)
    with pytest.raises(WrongArrays, match=name):
        check_numbers_in(with_number(arrays, name, 0, 1e308), TREE_NUMBERS)
