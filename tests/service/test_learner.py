"""The bound on the rows that a learner takes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from service.errors import InvalidSamples
from service.learner import check_norms
from service.names import NamedRows, NameTable, named_rows
from solver.rows import SparseRows

LIMIT = 100.0


def dense(rows: list[list[float]]) -> Any:
    return np.array(rows)


def named(rows: list[list[float]]) -> NamedRows:
    return named_rows([{f"x{k}": value for k, value in enumerate(row)} for row in rows])


def sparse(rows: list[list[float]]) -> SparseRows:
    of_names = named(rows)
    return NameTable(of_names.names).matrix(of_names, len(of_names.names))


@pytest.fixture(params=[dense, named, sparse])
def of_kind(request: pytest.FixtureRequest) -> Callable[[list[list[float]]], Any]:
    return request.param


def test_rows_at_the_bound_pass_however_many_there_are(of_kind: Callable[..., Any]):
    check_norms(of_kind([[6.0, 8.0], [0.0, 10.0], [10.0, 0.0]]), LIMIT)


@pytest.mark.parametrize("value", [10.001, 1e200])
def test_a_row_beyond_it_is_named(of_kind: Callable[..., Any], value: float):
    with pytest.raises(InvalidSamples) as refused:
        check_norms(of_kind([[6.0, 8.0], [0.0, value], [1.0, 1.0]]), LIMIT)
    assert [(wrong["row"], wrong["pointer"]) for wrong in refused.value.errors] == [(1, "/x/1")]
    assert "exceeds 10," in refused.value.errors[0]["detail"]
