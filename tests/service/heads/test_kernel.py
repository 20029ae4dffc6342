"""The solver's kernel for a spec, and the bound on the rows that it takes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.service.specs import read_papers_spec
from wolfstream.service.errors import InvalidSamples
from wolfstream.service.heads.kernel import check_norms, estimated_gamma, kernel_with
from wolfstream.service.spec.kernel import has_auto_gamma
from wolfstream.solver.prepare.named_rows import NamedRows, NameTable, named_rows
from wolfstream.solver.rows.matrix import SparseRows

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


class TestGamma:
    def test_an_estimate_fills_in_auto(self):
        spec = read_papers_spec({}).kernel
        assert has_auto_gamma(spec)
        assert kernel_with(spec, 0.25) == ("rbf", 0.25, 3, 0.0)
        spec = read_papers_spec(
            {"kernel": {"type": "polynomial", "degree": 2, "coef0": 0.5}}
        ).kernel
        assert has_auto_gamma(spec)
        assert kernel_with(spec, 0.25) == ("polynomial", 0.25, 2, 0.5)

    def test_a_given_gamma_stays(self):
        spec = read_papers_spec({"kernel": {"gamma": 3.0}}).kernel
        assert not has_auto_gamma(spec)
        assert kernel_with(spec, 0.25).gamma == 3.0

    def test_linear_has_no_gamma(self):
        spec = read_papers_spec({"kernel": {"type": "linear"}}).kernel
        assert not has_auto_gamma(spec)
        assert kernel_with(spec, 0.25).type == "linear"

    def test_that_of_a_polynomial_is_bounded_by_the_largest_row(self):
        X = 1e5 + np.arange(8.0).reshape(4, 2)
        largest = np.square(X).sum(axis=1).max()
        assert estimated_gamma("rbf", X) * largest > 1e6
        assert estimated_gamma("polynomial", X) * largest == pytest.approx(1e6)
