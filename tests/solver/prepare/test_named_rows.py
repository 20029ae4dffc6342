"""Names: the numbers that a model gives them, in the order of its log."""

from collections.abc import Iterable
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolfstream.solver.prepare.named_rows import (
    NamedRows,
    NameTable,
    joined,
    n_entries,
    n_rows,
    named_rows,
    square_norms,
)
from wolfstream.solver.rows.matrix import to_csr

NAMES = st.text("abcdefgh", min_size=1, max_size=1)
ROWS = st.lists(st.dictionaries(NAMES, st.integers(-2, 2).map(float)), min_size=1, max_size=5)


def contents(rows: NamedRows) -> list[dict[str, float]]:
    names = [rows.names[k] for k in rows.place]
    pairs = iter(zip(names, rows.value.tolist(), strict=True))
    return [dict(islice(pairs, n)) for n in rows.lengths.tolist()]


def entries(X: Any, names: Iterable[Any]) -> list[dict[Any, float]]:
    data, indices, ends = to_csr(X)
    key = list(names)
    return [
        {key[k]: value for k, value in zip(indices[a:b].tolist(), data[a:b].tolist(), strict=True)}
        for a, b in pairwise(ends.tolist())
    ]


class TestNamedRows:
    @given(ROWS)
    def test_keep_what_is_not_zero(self, rows: list[dict[str, float]]):
        kept = [{name: value for name, value in row.items() if value} for row in rows]
        assert contents(named_rows(rows)) == kept

    @given(st.lists(ROWS, min_size=1, max_size=4))
    def test_joined_they_are_as_if_they_had_come_together(self, parts: list[Any]):
        together = joined([named_rows(part) for part in parts])
        at_once = named_rows([row for part in parts for row in part])
        assert together.names == at_once.names
        for one, other in zip(together[1:], at_once[1:], strict=True):
            np.testing.assert_array_equal(one, other)

    def test_a_number_beyond_float64_overflows(self):
        with pytest.raises(OverflowError):
            named_rows([{"a": 10**400}])


class TestRows:
    @given(ROWS)
    def test_answer_alike_named_or_not(self, rows: list[dict[str, float]]):
        names = sorted({name for row in rows for name in row})
        X = np.array([[row.get(name, 0.0) for name in names] for row in rows])
        named = named_rows(rows)
        np.testing.assert_allclose(square_norms(named), square_norms(X), rtol=1e-15)
        assert n_rows(named) == n_rows(X)
        assert n_entries(named) == np.count_nonzero(X)
        assert n_entries(X) == X.size

    def test_a_square_norm_that_overflows_is_infinite(self):
        assert square_norms(named_rows([{"a": 1e200}, {}])).tolist() == [np.inf, 0.0]
        assert square_norms(np.array([[1e200]])).tolist() == [np.inf]


class TestNameTable:
    def test_numbers_are_in_the_order_of_coming(self):
        table = NameTable(["b", "a"])
        table.add(["a", "c", "b", "d"])
        assert table.names() == ["b", "a", "c", "d"]
        assert len(table) == 4

    def test_unknown_are_those_neither_here_nor_drafted(self):
        assert NameTable(["a"]).unknown(["b", "a", "c"], {"c"}) == ["b"]

    @given(ROWS, st.lists(NAMES, unique=True))
    def test_numbered_rows_have_the_same_contents(self, rows: Any, known: list[str]):
        table = NameTable(known)
        named = named_rows(rows)
        new = table.unknown(named.names)
        X = table.matrix(named, len(known))
        assert entries(X, known + new) == contents(named)
        assert X.width == len(known) + len(new)
        assert len(table) == len(known)

    @given(ROWS, st.lists(NAMES, unique=True), st.integers(0, 8))
    def test_a_table_that_has_grown_is_read_as_it_was(self, rows: Any, names: Any, known: int):
        """By a reader of a view that was published with fewer names."""
        known = min(known, len(names))
        before, grown = NameTable(names[:known]), NameTable(names)
        expected = before.matrix(named_rows(rows), known)
        for one, other in zip(grown.matrix(named_rows(rows), known), expected, strict=True):
            np.testing.assert_array_equal(one, other)
