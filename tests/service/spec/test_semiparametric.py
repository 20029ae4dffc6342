"""The semiparametric part of a spec: defaults, what it goes with, and every refusal's place."""

import math
from typing import Any

import pytest

from wolfstream.service.errors import Invalid
from wolfstream.service.heads.kinds import head_of_call
from wolfstream.service.spec.model import ModelSpec, read_spec

DEFAULTS = {
    "basis": [{"type": "constant"}],
    "kernel": None,
    "C": 1.0,
    "epsilon": 0.1,
    "window": 2000,
    "solver": "pdsg",
    "tol": 1e-3,
}


def regression(**fields: Any) -> dict[str, Any]:
    return {"task": "regression", **fields}


def part(**fields: Any) -> Any:
    return read_spec(regression(semiparametric=fields)).plain()["semiparametric"]


def problem(given: Any) -> tuple[str, str]:
    """The place that is wrong, and what is said of it first."""
    with pytest.raises(Invalid) as caught:
        read_spec(given)
    (place,) = {item["pointer"] for item in caught.value.errors}
    return place, caught.value.errors[0]["detail"]


class TestDefaults:
    def test_an_empty_part_is_an_intercept_beside_the_models_kernel(self):
        assert part() == DEFAULTS

    def test_a_basis_function_is_filled_in(self):
        given = [{"type": "trend"}, {"type": "sinc"}, {"type": "cos", "period": 24}]
        assert part(basis=given)["basis"] == [
            {"type": "trend", "feature": 0},
            {"type": "sinc", "feature": 0, "centre": 0.0, "scale": 1.0},
            {"type": "cos", "feature": 0, "period": 24.0},
        ]

    def test_there_may_be_no_basis(self):
        assert part(basis=[])["basis"] == []

    def test_its_kernel_is_rbf_unless_it_says_otherwise(self):
        assert part(kernel={"gamma": 2.0})["kernel"] == {"type": "rbf", "gamma": 2.0}
        assert part(kernel={"type": "linear"})["kernel"] == {"type": "linear"}

    def test_the_plain_spec_is_the_same_spec(self):
        spec = read_spec(regression(semiparametric={"basis": [{"type": "sin", "period": 7.0}]}))
        assert ModelSpec(**spec.plain()) == spec


class TestWhatFollows:
    def test_it_serves_where_it_is_the_only_head(self):
        assert read_spec(regression(asset=None, semiparametric={})).serve == "semiparametric"

    def test_asset_serves_beside_it_unless_it_is_asked_to(self):
        assert read_spec(regression(semiparametric={})).serve == "asset"
        asked = regression(semiparametric={}, serve="semiparametric")
        assert read_spec(asked).serve == "semiparametric"

    def test_it_cannot_serve_where_it_is_null(self):
        assert problem(regression(serve="semiparametric")) == (
            "/serve",
            "the head 'semiparametric' is null",
        )

    @pytest.mark.parametrize("given", [{}, {"working_set": None}, {"task": "classification"}])
    def test_it_does_not_learn_classes(self, given: dict[str, Any]):
        pointer, detail = problem({**given, "semiparametric": {}})
        assert pointer == "/semiparametric"
        assert "numbers only" in detail

    def test_samples_feed_it_where_it_exists(self):
        specs = [read_spec(given) for given in (regression(semiparametric={}), regression(), {})]
        heads = [head_of_call(spec, "samples") for spec in specs]
        assert heads == ["semiparametric", "adaptive", "working_set"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("field", "wrong"),
        [
            *[("C", value) for value in (0, -1.0, 1.1e9, math.inf, "1", None, True)],
            *[("epsilon", value) for value in (-1, math.nan, 1.1e100, None)],
            *[("window", value) for value in (0, -1, 20_001, 2.0, None, True)],
            *[("solver", value) for value in ("smo", None, 1)],
            *[("tol", value) for value in (0, 1e-10, math.nan, None)],
            *[("colour", value) for value in ("red", None)],
        ],
    )
    def test_a_field(self, field: str, wrong: Any):
        assert problem(regression(semiparametric={field: wrong}))[0] == f"/semiparametric/{field}"

    @pytest.mark.parametrize(
        ("basis", "place"),
        [
            ({"type": "sin"}, "/period"),
            ({"type": "sin", "period": 0}, "/period"),
            ({"type": "sin", "period": math.inf}, "/period"),
            ({"type": "sin", "period": 24.0, "scale": 1.0}, "/scale"),
            ({"type": "trend", "feature": -1}, "/feature"),
            ({"type": "trend", "feature": "temperature"}, "/feature"),
            ({"type": "trend", "feature": 0.0}, "/feature"),
            ({"type": "constant", "feature": 0}, "/feature"),
            ({"type": "sinc", "centre": math.nan}, "/centre"),
            ({"type": "sinc", "scale": -1.0}, "/scale"),
            ({"type": "wavelet"}, ""),
            ({}, ""),
            ("sin", ""),
        ],
    )
    def test_a_basis_function(self, basis: Any, place: str):
        given = regression(semiparametric={"basis": [{"type": "constant"}, basis]})
        assert problem(given)[0] == f"/semiparametric/basis/1{place}"

    def test_more_bases_than_anyone_names(self):
        given = regression(semiparametric={"basis": [{"type": "constant"}] * 101})
        assert problem(given)[0] == "/semiparametric/basis"

    def test_a_kernel(self):
        given = regression(semiparametric={"kernel": {"type": "rbf", "gamma": -1.0}})
        assert problem(given)[0] == "/semiparametric/kernel/gamma"
