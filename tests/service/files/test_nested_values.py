"""Values within values: what becomes columns or texts, and what stays as it is."""

import tracemalloc
from typing import Any

import pytest

from wolfstream.service.files.nested_values import (
    DEEPEST,
    MOST_VALUES,
    flat_rows,
    path_in,
    shared_paths,
)


def deep(depth: int) -> Any:
    value: Any = 7
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("row", "flat"),
    [
        ({"user": {"age": 3, "home": {"city": "Bari"}}}, {"user.age": 3, "user.home.city": "Bari"}),
        ({"tags": ["new", "paid"], "b": 1}, {"tags": "new, paid", "b": 1}),
        ({"user": {"tags": ("new",)}}, {"user.tags": "new"}),
        ({"user": {}, "tags": [], "b": 1}, {"tags": None, "b": 1}),
        (deep(DEEPEST + 1), {".".join("a" * (DEEPEST + 1)): 7}),
    ],
)
def test_objects_are_columns_and_lists_of_texts_are_texts(row: Any, flat: Any) -> None:
    assert flat_rows([row]) == [flat]
    assert list(flat_rows([row])[0]) == list(flat)


@pytest.mark.parametrize(
    "row",
    [
        {"a": [1, 2]},
        {"a": [{"b": 1}]},
        {"a": ["b", 1]},
        {"a": {"b": 1}, "a.b": 2},
        {"a.b": 2, "a": {"b": 1}},
    ],
)
def test_what_is_not_clear_stays(row: Any) -> None:
    assert flat_rows([row]) == [row]


def test_names_made_twice_stay() -> None:
    row = {"a": {"b": {"c": 1}}, "a.b": {"c": 2}}
    assert flat_rows([row]) == [{"a.b.c": 1, "a.b": {"c": 2}}]
    assert flat_rows([{"a": {"b.c": 1, "b": {"c": 2}}}]) == [{"a": {"b.c": 1, "b": {"c": 2}}}]


def test_objects_that_are_too_deep_end_as_objects() -> None:
    (flat,) = flat_rows([deep(DEEPEST + 2)])
    assert list(flat.values()) == [{"a": 7}]


@pytest.mark.parametrize(
    "row",
    [
        {"a": dict.fromkeys(map(str, range(MOST_VALUES + 1)), 1)},
        {"a": {"b" * 255: 1}},
        {"a" * 10**6: {str(k): {"c": 1} for k in range(10**5)}},
    ],
)
def test_objects_of_many_values_or_long_names_stay(row: Any) -> None:
    assert flat_rows([row]) == [row]


def test_names_that_are_made_are_bounded() -> None:
    rows = [{"a": {str(500 * i + k): 1 for k in range(500)}} for i in range(30)]
    flat = flat_rows(rows)
    assert [len(row) for row in flat[:20]] == [500] * 20
    assert flat[20:] == rows[20:]


@pytest.mark.timeout(30)  # 16,000 objects in a row took 24 s
def test_a_row_of_very_many_objects_costs_what_its_bytes_do() -> None:
    row = {f"n{k}": {"a": 1} for k in range(60_000)}
    (flat,) = flat_rows([row])
    assert len(flat) == len(row)
    assert sum(isinstance(value, dict) for value in flat.values()) == len(row) - 10_000


def test_rows_share_the_names_that_are_made() -> None:
    first, second = (next(iter(row)) for row in flat_rows([{"a": {"b": 1}}, {"a": {"b": 2}}]))
    assert first is second


def test_rows_without_values_in_values_are_the_same_object() -> None:
    rows = [{"a": 1}, {"b": "x"}]
    assert flat_rows(rows) is rows


def test_names_that_are_not_made_take_no_memory() -> None:
    """Each would be as long as the longest name, however short the name in the object is."""
    prefix = "x" * 240
    rows = [{prefix: {f"{1000 * i + k:x}": 1 for k in range(1000)}} for i in range(100)]
    tracemalloc.start()
    try:
        flat = flat_rows(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [len(row) for row in flat] == [1000] * 10 + [1] * 90
    assert peak < 8_000_000  # 42,000,000 where all names are kept


@pytest.mark.parametrize(
    ("row", "name", "path"),
    [
        ({"user": {"home": {"city": 1}}}, "user.home.city", ("user", "home", "city")),
        ({"a.b": {"c": 1}, "a": {"b.d": 1}}, "a.b.c", ("a.b", "c")),
        ({"a.b": {"c": 1}, "a": {"b.d": 1}}, "a.b.d", ("a", "b.d")),
        ({"": {"": {"": 1}}}, "..", ("", "", "")),
        ({"a.b": 1, "a": {"c": 1}}, "a.b", ("a.b",)),
        ({"a": {"b": 1}}, "a.c", ("a.c",)),
        ({"__proto__": {"~/": 1}}, "__proto__.~/", ("__proto__", "~/")),
        (deep(DEEPEST + 2), ".".join("a" * (DEEPEST + 1)), ("a",) * (DEEPEST + 1)),
    ],
)
def test_a_name_leads_back_to_its_value(row: Any, name: str, path: tuple[str, ...]) -> None:
    assert path_in(row, name) == path


def test_names_lead_back_where_all_rows_have_them_alike() -> None:
    rows = [{"a": {"b": 1, "c": {"d": 1}}}, {"a": {"c.d": 1}}, {"b": {"c": 1}}, {"b.c": 2}]
    assert shared_paths(rows) == {"a.b": ("a", "b"), "a.c.d": None, "b.c": None}
    assert shared_paths(reversed(rows))["b.c"] is None
