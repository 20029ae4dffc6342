"""The spec of a model: defaults, what follows from what, and every refusal's place."""

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolfstream.service.errors import Invalid
from wolfstream.service.spec.model import ModelSpec, read_spec

DEFAULTS = {
    "task": "classification",
    "classes": None,
    "prepare": {
        "columns": {},
        "names": "learned",
        "missing": "mean",
        "named": "table",
        "timestamps": [],
        "texts": "crossed",
        "codes": "crossed",
    },
    "temporal": "auto",
    "kernel": {"type": "rbf", "gamma": "auto"},
    "working_set": {
        "algorithm": "msfw",
        "C": 1.0,
        "corrective_steps": 10,
        "max_size": 5000,
        "gram_bytes_max": 2**30,
        "epsilon": None,
        "class_weight": [],
        "horizon": "auto",
        "scores": "coupled",
    },
    "asset": {
        "algorithm": "asset",
        "features": "fourier",
        "dimension": 512,
        "class_weight": [],
        "lambda": 1e-4,
        "epsilon": None,
        "average": True,
        "average_from": None,
        "horizon": "auto",
    },
    "semiparametric": None,
    "adaptive": {"horizons": None, "steps": None, "neighbours": None, "naive_bayes": None},
    "novelty": None,
    "pending": {"max_rows": 100_000, "max_bytes": 67_108_864, "max_age_seconds": 2_592_000.0},
    "serve": "adaptive",
    "seed": 0,
}
POLYNOMIAL = {"type": "polynomial", "degree": 3, "gamma": "auto", "coef0": 1.0}
LINEAR = {"type": "linear"}
NYSTROM = DEFAULTS["asset"] | {"features": "nystrom"}
NEVER = DEFAULTS["working_set"] | {"horizon": None}
IDENTITY = DEFAULTS["asset"] | {"features": "identity", "dimension": None}


def plain(**given_fields: Any) -> dict[str, Any]:
    return read_spec(given_fields).plain()


def refused(given_spec: Any) -> Invalid:
    with pytest.raises(Invalid) as caught:
        read_spec(given_spec)
    assert caught.value.errors
    assert all(item["detail"] for item in caught.value.errors)
    return caught.value


def pointers(given_spec: Any) -> set[str]:
    return {item["pointer"] for item in refused(given_spec).errors}


class TestDefaults:
    def test_an_empty_object_is_a_model(self):
        assert plain() == DEFAULTS

    @pytest.mark.parametrize("part", ["kernel", "working_set", "asset"])
    def test_an_empty_part_has_its_defaults(self, part: str):
        assert plain(**{part: {}}) == DEFAULTS

    @pytest.mark.parametrize("name", DEFAULTS)
    def test_saying_a_default_changes_nothing(self, name: str):
        assert plain(**{name: DEFAULTS[name]}) == DEFAULTS

    @pytest.mark.parametrize("part", ["kernel", "working_set", "asset"])
    def test_one_field_leaves_the_others_of_its_part(self, part: str):
        changed = {
            "kernel": {"gamma": 0.5},
            "working_set": {"C": 2.0},
            "asset": {"lambda": 0.01},
        }[part]
        assert plain(**{part: changed}) == DEFAULTS | {part: DEFAULTS[part] | changed}

    def test_polynomial(self):
        expected = DEFAULTS | {"kernel": POLYNOMIAL, "asset": NYSTROM, "working_set": NEVER}
        assert plain(kernel={"type": "polynomial"}) == expected

    def test_linear(self):
        expected = DEFAULTS | {"kernel": LINEAR, "asset": IDENTITY, "working_set": NEVER}
        assert plain(kernel={"type": "linear"}) == expected

    def test_the_spec_of_the_contract_is_one(self):
        asset = {"algorithm": "asset", "features": "fourier", "dimension": 512, "lambda": 1e-4}
        working_set = {"algorithm": "msfw", "C": 1.0, "corrective_steps": 1, "max_size": 5000}
        given_spec = {
            "task": "classification",
            "kernel": {"type": "rbf", "gamma": "auto"},
            "working_set": working_set,
            "asset": asset,
            "serve": "adaptive",
            "seed": 0,
        }
        read = plain(**given_spec)
        assert read["working_set"] == DEFAULTS["working_set"] | working_set
        assert read | {"working_set": None} == DEFAULTS | {"working_set": None}

    def test_whole_numbers_may_stand_for_floats(self):
        assert read_spec({"working_set": {"C": 1}}) == read_spec({})


class TestHorizon:
    @pytest.mark.parametrize("given", [{}, {"adaptive": None}, {"task": "regression"}])
    def test_averages_of_prepared_rows_follow_a_drift(self, given: dict[str, Any]):
        assert plain(**given)["asset"]["horizon"] == "auto"

    @pytest.mark.parametrize(
        "given",
        [
            {"prepare": None, "adaptive": None},
            {"asset": {"algorithm": "asset*"}},
            {"asset": {"average": False}},
            {"asset": {"average_from": 7}},
            {"asset": {"horizon": None}},
        ],
    )
    def test_otherwise_steps_fall_for_ever(self, given: dict[str, Any]):
        assert plain(**given)["asset"]["horizon"] is None

    @pytest.mark.parametrize(
        "own", [{"algorithm": "asset*"}, {"average": False}, {"average_from": 7}]
    )
    def test_auto_chooses_between_averages(self, own: dict[str, Any]):
        assert pointers({"asset": {"horizon": "auto", **own}}) == {"/asset/horizon"}

    def test_a_semiparametric_model_takes_rows_as_they_come(self):
        spec = plain(task="regression", semiparametric={"basis": [{"type": "constant"}]})
        assert spec["prepare"] is None
        assert spec["asset"]["horizon"] is None


class TestPending:
    def test_null_switches_it_off(self):
        assert plain(pending=None)["pending"] is None

    @pytest.mark.parametrize(
        "part",
        [
            {"max_rows": 0},
            {"max_rows": 1.5},
            {"max_bytes": 1000},
            {"max_age_seconds": 0},
            {"max_age_seconds": float("inf")},
        ],
    )
    def test_bounds_that_bound_nothing_or_all_are_refused(self, part: dict[str, Any]):
        assert pointers({"pending": part}) == {f"/pending/{name}" for name in part}


class TestWhatFollows:
    @pytest.mark.parametrize(
        ("kernel", "features", "expected"),
        [
            ({}, {}, ("fourier", 512)),
            ({}, {"features": "nystrom"}, ("nystrom", 512)),
            (POLYNOMIAL, {}, ("nystrom", 512)),
            (LINEAR, {}, ("identity", None)),
            (LINEAR, {"features": "nystrom"}, ("nystrom", 512)),
            (LINEAR, {"lambda": 0.5}, ("identity", None)),
            (POLYNOMIAL, {"dimension": 2048}, ("nystrom", 2048)),
        ],
    )
    def test_features_follow_the_kernel(self, kernel: Any, features: Any, expected: Any):
        read = plain(kernel=kernel, asset=features)["asset"]
        assert (read["features"], read["dimension"]) == expected

    @pytest.mark.parametrize("kernel", [POLYNOMIAL, LINEAR])
    def test_a_null_asset_stays_null(self, kernel: Any):
        assert plain(kernel=kernel, asset=None)["asset"] is None

    @pytest.mark.parametrize(
        ("given_spec", "pointer", "detail"),
        [
            ({"kernel": LINEAR, "asset": {"features": "fourier"}}, "features", "identity"),
            ({"kernel": POLYNOMIAL, "asset": {"features": "fourier"}}, "features", "nystrom"),
            ({"kernel": POLYNOMIAL, "asset": {"features": "identity"}}, "features", "linear"),
            ({"asset": {"features": "identity"}}, "features", "linear"),
            ({"kernel": LINEAR, "asset": {"dimension": 8}}, "dimension", "those of the rows|rows"),
            ({"asset": {"dimension": None}}, "dimension", "a number"),
            ({"asset": {"features": "nystrom", "dimension": 2049}}, "dimension", "2048"),
            ({"asset": {"epsilon": 0.1}}, "epsilon", "regression"),
            ({"task": "regression", "asset": {"epsilon": None}}, "epsilon", "a number"),
            ({"asset": {"algorithm": "asset*", "average_from": 5}}, "average_from", "average"),
        ],
    )
    def test_contradictions_within_asset(self, given_spec: Any, pointer: str, detail: str):
        (problem,) = refused(given_spec).errors
        assert problem["pointer"] == f"/asset/{pointer}"
        assert re.search(detail, problem["detail"])

    def test_regression_has_no_working_set(self):
        regression = DEFAULTS["asset"] | {"epsilon": 0.1}
        expected = {"task": "regression", "working_set": None}
        assert plain(task="regression") == DEFAULTS | expected | {"asset": regression}
        assert plain(task="regression", working_set=None) == plain(task="regression")

    @pytest.mark.parametrize("epsilon", [0, 0.0, 2.5, 1e6])
    def test_epsilon_may_be_zero_or_more(self, epsilon: float):
        read = plain(task="regression", asset={"epsilon": epsilon})["asset"]
        assert read["epsilon"] == epsilon

    @pytest.mark.parametrize("working_set", [{}, {"C": 2.0}, {"epsilon": 0.0}])
    def test_set_of_numbers_has_tube_without_fading(self, working_set: Any):
        read = plain(task="regression", working_set=working_set)
        assert read["working_set"] == NEVER | {"epsilon": 0.1} | working_set
        assert plain(task="regression", working_set={}, adaptive=None)["serve"] == "working_set"

    @pytest.mark.parametrize(
        ("given_spec", "pointer"),
        [
            ({"working_set": {"epsilon": 0.1}}, "/working_set/epsilon"),
            ({"task": "regression", "working_set": {"epsilon": -1}}, "/working_set/epsilon"),
            ({"task": "regression", "working_set": {"epsilon": None}}, "/working_set/epsilon"),
            ({"task": "regression", "working_set": {"horizon": 99}}, "/working_set/horizon"),
            (
                {
                    "task": "regression",
                    "working_set": {"class_weight": [{"label": 1, "weight": 2.0}]},
                },
                "/working_set/class_weight",
            ),
            (
                {
                    "task": "regression",
                    "kernel": {"type": "polynomial", "coef0": -1.0},
                    "working_set": {},
                },
                "/kernel/coef0",
            ),
        ],
    )
    def test_contradictions_of_the_working_set_and_the_task(self, given_spec: Any, pointer: str):
        assert pointers(given_spec) == {pointer}

    def test_regression_needs_asset_or_the_adaptive_head(self):
        assert pointers({"task": "regression", "asset": None, "adaptive": None}) == {"/serve"}

    def test_without_the_adaptive_head_the_first_other_one_serves(self):
        assert plain(adaptive=None)["serve"] == "working_set"
        assert plain(adaptive=None, working_set=None)["serve"] == "asset"

    def test_the_novelty_head_serves_nothing(self):
        own = plain(novelty={})["novelty"]
        assert own == {
            "algorithm": "msfw",
            "C": 1.0,
            "gamma": "auto",
            "corrective_steps": 10,
            "max_size": 1000,
        }
        assert pointers({"novelty": {}, "serve": "novelty"}) == {"/serve"}
        assert pointers({"novelty": {"gamma": 0}}) == {"/novelty/gamma"}
        alone = {"novelty": {}, "working_set": None, "asset": None, "adaptive": None}
        assert pointers(alone) == {"/serve"}

    def test_the_adaptive_head_needs_prepared_rows(self):
        assert pointers({"prepare": None}) == {"/prepare"}
        assert plain(prepare=None, adaptive=None)["prepare"] is None

    def test_samples_fade_unless_spec_is_the_papers(self):
        assert plain()["working_set"]["horizon"] == "auto"
        assert plain(prepare=None, adaptive=None)["working_set"]["horizon"] is None
        assert plain(working_set={"horizon": 500})["working_set"]["horizon"] == 500
        linear = {"kernel": {"type": "linear"}, "working_set": {"horizon": "auto"}}
        assert pointers(linear) == {"/working_set/horizon"}
        assert pointers({"working_set": {"horizon": 0}}) == {"/working_set/horizon"}
        assert pointers({"working_set": {"horizon": "never"}}) == {"/working_set/horizon"}

    def test_naive_bayes_is_of_classes(self):
        bank = {"adaptive": {"naive_bayes": [300]}}
        assert pointers({"task": "regression"} | bank) == {"/adaptive/naive_bayes"}

    def test_labels_before_a_row_are_of_the_adaptive_head(self):
        assert pointers({"temporal": True, "adaptive": None}) == {"/temporal"}
        assert plain(temporal=True)["temporal"] is True

    def test_a_semiparametric_head_learns_rows_as_they_come(self):
        read = plain(task="regression", semiparametric={})
        assert (read["prepare"], read["adaptive"], read["serve"]) == (None, None, "asset")
        given_spec = {"task": "regression", "semiparametric": {}, "prepare": {}}
        assert pointers(given_spec) == {"/prepare"}

    def test_both_heads_can_serve(self):
        assert plain(serve="asset")["serve"] == "asset"
        assert plain(serve="working_set")["serve"] == "working_set"

    @pytest.mark.parametrize(
        "given_spec",
        [
            {"working_set": None, "serve": "working_set"},
            {"asset": None, "serve": "asset"},
            {"task": "regression", "serve": "working_set"},
        ],
    )
    def test_a_null_head_cannot_serve(self, given_spec: Any):
        assert "is null" in refused(given_spec).errors[0]["detail"]

    @pytest.mark.parametrize(
        "given_spec",
        [{"working_set": None, "asset": None}, {"asset": None, "task": "regression"}],
    )
    def test_there_must_be_a_head(self, given_spec: Any):
        refused(given_spec | {"adaptive": None})

    def test_what_was_given_is_not_changed(self):
        body = {"kernel": {"type": "linear"}, "working_set": {}}
        read_spec(body)
        assert body == {"kernel": {"type": "linear"}, "working_set": {}}


class TestRefusals:
    @pytest.mark.parametrize("given_spec", [None, 1, "rbf", [], [{}], True])
    def test_a_spec_is_an_object(self, given_spec: Any):
        refused(given_spec)

    @pytest.mark.parametrize(
        ("given_spec", "pointer"),
        [
            ({"gamma": 1.0}, "/gamma"),
            ({"Seed": 1}, "/Seed"),
            ({"working_set": {"c": 1.0}}, "/working_set/c"),
            ({"asset": {"eta": 1.0}}, "/asset/eta"),
            ({"asset": {"C": 1.0}}, "/asset/C"),
        ],
    )
    def test_an_unknown_field(self, given_spec: Any, pointer: str):
        assert pointers(given_spec) == {pointer}

    @pytest.mark.parametrize(
        ("given_spec", "pointer"),
        [
            ({"task": "ranking"}, "/task"),
            ({"task": []}, "/task"),
            ({"task": None}, "/task"),
            ({"serve": "both"}, "/serve"),
            ({"serve": None}, "/serve"),
            ({"seed": -1}, "/seed"),
            ({"seed": 2**53}, "/seed"),
            ({"seed": 10**400}, "/seed"),
            ({"seed": 1.0}, "/seed"),
            ({"seed": True}, "/seed"),
            ({"seed": "1"}, "/seed"),
            ({"kernel": None}, "/kernel"),
            ({"kernel": "rbf"}, "/kernel"),
            ({"kernel": {"type": "sigmoid"}}, "/kernel"),
            ({"kernel": {"type": None}}, "/kernel"),
            ({"kernel": {"type": []}}, "/kernel"),
            ({"working_set": []}, "/working_set"),
            ({"working_set": True}, "/working_set"),
            ({"asset": "asset"}, "/asset"),
        ],
    )
    def test_a_wrong_value(self, given_spec: Any, pointer: str):
        assert pointers(given_spec) == {pointer}

    @pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
    @pytest.mark.parametrize(
        "gamma", [0, 0.0, -1.0, 1.1e12, math.nan, math.inf, 10**400, "scale", True, None, [1.0]]
    )
    def test_gamma_is_auto_or_positive(self, kernel: str, gamma: Any):
        assert pointers({"kernel": {"type": kernel, "gamma": gamma}}) == {"/kernel/gamma"}

    @pytest.mark.parametrize(
        ("field", "wrong"),
        [
            *[("degree", value) for value in (0, 9, -1, 2.0, "2", True, None)],
            *[("coef0", value) for value in (-1.1e6, 1.1e6, math.nan, "1", None)],
        ],
    )
    def test_polynomial(self, field: str, wrong: Any):
        spec = {"kernel": {"type": "polynomial", field: wrong}}
        assert pointers(spec) == {f"/kernel/{field}"}

    @pytest.mark.parametrize(
        ("field", "wrong"),
        [
            *[("algorithm", value) for value in ("fw", "asset", None)],
            *[("C", value) for value in (0, -1.0, 1e10, math.nan, math.inf, "1", True, None)],
            *[("corrective_steps", value) for value in (-1, 101, 1.5, True, None)],
            *[("max_size", value) for value in (1, 0, -5, 500_001, 10.0, "5", None)],
        ],
    )
    def test_working_set(self, field: str, wrong: Any):
        assert pointers({"working_set": {field: wrong}}) == {f"/working_set/{field}"}

    @pytest.mark.parametrize(
        ("wrong", "place"),
        [
            ({"a": 2.0}, ""),
            ([{"label": "a"}], "/0/weight"),
            ([{"label": "a", "weight": 1}, {"label": "b", "weight": 0}], "/1/weight"),
            ([{"label": "a", "weight": True}], "/0/weight"),
            ([{"label": 1.5, "weight": 1}], "/0/label"),
            ([{"label": None, "weight": 1}], "/0/label"),
        ],
    )
    def test_class_weight(self, wrong: Any, place: str):
        assert pointers({"working_set": {"class_weight": wrong}}) == {
            f"/working_set/class_weight{place}"
        }

    def test_labels_of_class_weights_keep_their_type(self):
        weights = [{"label": label, "weight": 2.0} for label in (True, 1, "1")]
        read = plain(working_set={"class_weight": weights})["working_set"]["class_weight"]
        assert [type(item["label"]) for item in read] == [bool, int, str]
        assert read == weights

    @pytest.mark.parametrize(
        ("field", "wrong"),
        [
            *[("algorithm", value) for value in ("msfw", None)],
            *[("features", value) for value in ("gabor", None, [])],
            *[("dimension", value) for value in (0, -1, 16_385, 2.0, True, None)],
            *[("epsilon", value) for value in (-1, math.nan, 1.1e6, "1", True)],
            *[("horizon", value) for value in (0, -1, 1.0, True)],
            *[("average", value) for value in (0, 1, None, "no")],
            *[("lambda", value) for value in (0, 1e-13, -1.0, 1.1e6, math.nan, "1", None)],
            *[("average_from", value) for value in (0, -1, 1.0, True)],
        ],
    )
    def test_asset(self, field: str, wrong: Any):
        assert pointers({"asset": {field: wrong}}) == {f"/asset/{field}"}

    def test_every_wrong_place_is_named(self):
        given_spec = {"seed": -1, "working_set": {"C": 0, "max_size": 1}, "colour": "red"}
        expected = {"/seed", "/working_set/C", "/working_set/max_size", "/colour"}
        assert pointers(given_spec) == expected

    @pytest.mark.parametrize(
        ("part", "field", "smallest", "largest"),
        [
            ("kernel", "gamma", 5e-324, 1e12),
            ("working_set", "C", 1e-9, 1e9),
            ("working_set", "corrective_steps", 0, 100),
            ("working_set", "max_size", 2, 500_000),
            ("asset", "dimension", 1, 16_384),
            ("asset", "lambda", 1.1e-12, 1e6),
            ("asset", "average_from", 1, 10**9),
            ("asset", "horizon", 1, 10**9),
        ],
    )
    def test_the_ends_of_a_range_belong_to_it(
        self, part: str, field: str, smallest: Any, largest: Any
    ):
        for value in (smallest, largest):
            assert plain(**{part: {field: value}})[part][field] == value


NUMBERS = st.one_of(st.integers(-2, 10), st.integers(), st.floats())
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        NUMBERS,
        st.text(max_size=4),
        st.binary(max_size=3),
        st.sampled_from(
            [
                "auto",
                "rbf",
                "polynomial",
                "linear",
                "sfw",
                "asset",
                "working_set",
                "nystrom",
                "identity",
            ]
        ),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)


def some_of(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, VALUES | NUMBERS))


ALMOST_SPECS = st.fixed_dictionaries(
    {},
    optional={
        "task": st.sampled_from(["classification", "regression"]) | VALUES,
        "kernel": some_of("type", "gamma", "degree", "coef0") | VALUES,
        "working_set": some_of("algorithm", "C", "corrective_steps", "max_size") | st.none(),
        "asset": some_of("algorithm", "lambda", "dimension", "features", "epsilon", "average_from")
        | st.none(),
        "semiparametric": some_of("basis", "C", "epsilon", "window", "kernel") | st.none(),
        "serve": st.sampled_from(["working_set", "asset"]) | VALUES,
        "seed": st.integers(0, 2**53 - 1) | VALUES,
        "other": VALUES,
    },
)


def specs() -> st.SearchStrategy[dict[str, Any]]:
    """Valid specs with some of their fields left out."""
    gamma = st.just("auto") | st.floats(1e-12, 1e12)
    rbf = st.fixed_dictionaries({}, optional={"type": st.just("rbf"), "gamma": gamma})
    other = st.fixed_dictionaries(
        {"type": st.just("polynomial")},
        optional={"degree": st.integers(1, 8), "gamma": gamma, "coef0": st.floats(-1e6, 1e6)},
    ) | st.just({"type": "linear"})
    working_set = st.fixed_dictionaries(
        {}, optional={"algorithm": st.sampled_from(["sfw", "msfw"]), "C": st.floats(1e-9, 1e9)}
    )
    common: dict[str, Any] = {
        "lambda": st.floats(2e-12, 1e6),
        "horizon": st.none() | st.integers(1),
    }
    averages: Any = {"average_from": st.none() | st.integers(1)}
    fourier = st.fixed_dictionaries(
        {}, optional={**common, **averages, "dimension": st.integers(1, 16_384)}
    )
    nystrom = st.fixed_dictionaries(
        {"algorithm": st.just("asset*"), "features": st.just("nystrom")},
        optional={**common, "dimension": st.integers(1, 2048)},
    )
    tolerant = st.fixed_dictionaries({}, optional={**common, "epsilon": st.floats(0, 1e6)})
    seed = {"seed": st.integers(0, 2**53 - 1)}
    asset = fourier | nystrom | st.none()
    regression = {"task": st.just("regression")}
    return st.one_of(
        st.fixed_dictionaries({}, optional={"kernel": rbf, "asset": asset, **seed}),
        st.fixed_dictionaries({"working_set": st.none()}, optional={"kernel": rbf, **seed}),
        st.fixed_dictionaries({}, optional={"kernel": other, "working_set": working_set, **seed}),
        st.fixed_dictionaries({"asset": nystrom}, optional={"kernel": other | rbf, **seed}),
        st.fixed_dictionaries(regression, optional={"kernel": other | rbf, "asset": tolerant}),
    )


class TestAnything:
    @given(ALMOST_SPECS | VALUES)
    def test_is_a_spec_or_a_refusal(self, given_spec: Any):
        try:
            spec = read_spec(given_spec)
        except Invalid as error:
            problems = error.errors
        else:
            assert getattr(spec, spec.serve) is not None
            return
        assert problems
        assert all(item["pointer"][:1] in ("", "/") for item in problems)

    @given(specs())
    def test_the_plain_spec_is_the_same_spec(self, given_spec: dict[str, Any]):
        spec = read_spec(given_spec)
        assert read_spec(spec.plain()) == spec
        assert ModelSpec(**spec.plain()) == spec
        assert set(spec.plain()) == set(DEFAULTS)
