"""What a refused spec is told: what is wrong, in words of the domain, and what to do."""

from typing import Any

import pytest
from hypothesis import given

from tests.service.spec.test_model import ALMOST_SPECS, refused
from wolfstream.service.errors import MOST_ERRORS, Invalid
from wolfstream.service.spec.model import read_spec


def only(given_spec: Any) -> tuple[str, str]:
    """The pointer and the detail of the one thing that is wrong."""
    (problem,) = refused(given_spec).errors
    return problem["pointer"], problem["detail"]


def regression(**own: Any) -> dict[str, Any]:
    return {"task": "regression", "semiparametric": own}


@pytest.mark.parametrize(
    ("given_spec", "pointer", "detail"),
    [
        (
            {"C": 10},
            "/C",
            'unknown field "C"; it belongs to "working_set", "semiparametric" or "novelty"',
        ),
        ({"lambda": 1}, "/lambda", 'unknown field "lambda"; it belongs to "asset"'),
        ({"gamma": 1}, "/gamma", 'unknown field "gamma"; it belongs to "kernel" or "novelty"'),
        (
            {"asset": {"kernel": {}}},
            "/asset/kernel",
            'unknown field "kernel"; it belongs to the spec itself or "semiparametric"',
        ),
        (
            {"asset": {"max_size": 9}},
            "/asset/max_size",
            'unknown field "max_size"; it belongs to "working_set" or "novelty"',
        ),
        (
            {"working_set": {"label": "a"}},
            "/working_set/label",
            'unknown field "label"; it belongs to "class_weight" of "working_set"',
        ),
        ({"asset": {"lam": 1}}, "/asset/lam", 'unknown field "lam"; did you mean "lambda"?'),
        ({"working_set": {"c": 3}}, "/working_set/c", 'unknown field "c"; did you mean "C"?'),
        (
            {"kernel": {"width": 3}},
            "/kernel/width",
            'unknown field "width"; the fields of "kernel" are "type" and "gamma"',
        ),
        (
            {"colour": "red"},
            "/colour",
            'unknown field "colour"; the fields of the spec are "task", "classes", "prepare", '
            '"temporal", "kernel", "working_set", "asset", "semiparametric", "adaptive", '
            '"custom", "novelty", "pending", "serve" and "seed"',
        ),
        (
            {"kernel": {"type": "linear", "gamma": 1}},
            "/kernel/gamma",
            'unknown field "gamma" of the type "linear"; '
            'it belongs to the type "rbf" or "polynomial"',
        ),
    ],
)
def test_an_unknown_field_is_sent_where_it_belongs(given_spec: Any, pointer: str, detail: str):
    assert only(given_spec) == (pointer, detail)


def test_of_many_unknown_fields_the_first_are_named():
    with pytest.raises(Invalid) as error:
        read_spec({f"colour{k}": 1 for k in range(5000)})
    assert [wrong["pointer"] for wrong in error.value.errors] == [
        f"/colour{k}" for k in range(MOST_ERRORS)
    ]


@pytest.mark.parametrize(
    ("given_spec", "pointer", "detail"),
    [
        ([], "", 'the spec must be an object such as {} or {"task": "regression"}'),
        (
            {"kernel": "linear"},
            "/kernel",
            '"kernel" must be an object such as {"type": "linear"}, not "linear"',
        ),
        (
            {"kernel": 3},
            "/kernel",
            '"kernel" must be an object such as {"type": "rbf"}, not 3',
        ),
        (
            {"working_set": "msfw"},
            "/working_set",
            '"working_set" must be an object such as {"C": 1.0}, or null, not "msfw"',
        ),
        (
            regression(basis=["trend"]),
            "/semiparametric/basis/0",
            '"basis" 0 must be an object such as {"type": "trend"}, not "trend"',
        ),
        (
            regression(basis="trend"),
            "/semiparametric/basis",
            '"basis" must be an array such as [{"type": "constant"}], not "trend"',
        ),
        (
            {"working_set": {"class_weight": {"spam": 2}}},
            "/working_set/class_weight",
            '"class_weight" must be an array such as [{"label": "spam", "weight": 2.0}]',
        ),
        (
            {"kernel": {"type": "gauss"}},
            "/kernel",
            '"type" must be "rbf", "polynomial" or "linear", not "gauss"',
        ),
        (
            regression(basis=[{}]),
            "/semiparametric/basis/0",
            '"type" is missing; it must be "constant", "trend", "sin", "cos" or "sinc"',
        ),
        (
            {"task": "classify"},
            "/task",
            '"task" must be "classification" or "regression", not "classify"',
        ),
        ({"working_set": {"C": "a"}}, "/working_set/C", '"C" must be a number, not "a"'),
        ({"working_set": {"C": -1}}, "/working_set/C", '"C" must be at least 1e-09, not -1'),
        ({"asset": {"lambda": 0}}, "/asset/lambda", '"lambda" must be more than 1e-12, not 0'),
        ({"seed": 2**60}, "/seed", f'"seed" must be less than {2**53}, not {2**60}'),
        (
            {"working_set": {"max_size": 2.5}},
            "/working_set/max_size",
            '"max_size" must be a whole number, not 2.5',
        ),
        (
            {"asset": {"dimension": "wide"}},
            "/asset/dimension",
            '"dimension" must be a whole number, or null, not "wide"',
        ),
        (
            {"asset": {"average": 1}},
            "/asset/average",
            '"average" must be true or false, not 1',
        ),
        (
            {"kernel": {"gamma": -2.5}},
            "/kernel/gamma",
            '"gamma" must be "auto" or more than 0, not -2.5',
        ),
        (
            {"kernel": {"gamma": None}},
            "/kernel/gamma",
            '"gamma" must be "auto" or a number, not null',
        ),
        (
            {"working_set": {"class_weight": [{"label": 1.5, "weight": 1}]}},
            "/working_set/class_weight/0/label",
            '"label" must be a string, a whole number or true or false, not 1.5',
        ),
        (
            {"working_set": {"class_weight": [{"label": "a"}]}},
            "/working_set/class_weight/0/weight",
            'the field "weight" is missing',
        ),
    ],
)
def test_a_wrong_value_is_told_what_it_must_be(given_spec: Any, pointer: str, detail: str):
    assert only(given_spec) == (pointer, detail)


def test_many_entries():
    weights = [{"label": "a", "weight": 1}] * 1001
    pointer, detail = only({"working_set": {"class_weight": weights}})
    assert pointer == "/working_set/class_weight"
    assert detail == '"class_weight" must have at most 1000 entries'


@pytest.mark.parametrize(
    "name", ["x" * 100_000, "\ud800", '"', "\n", "a" * 39 + "\U0001f600" * 3, ""]
)
def test_what_was_sent_is_repeated_in_part_and_escaped(name: str):
    for given_spec in ({name: 1}, {"task": name}, {"kernel": name}, {"kernel": {"type": name}}):
        _, detail = only(given_spec)
        assert len(detail) < 300
        assert detail.isascii()
        assert detail.isprintable()


@pytest.mark.parametrize(
    "value",
    [10**400, -(10**5000), float("nan"), float("inf")],
    ids=["large", "huge", "nan", "infinite"],
)
def test_numbers_that_are_none(value: float):
    for field in ("C", "max_size"):
        _, detail = only({"working_set": {field: value}})
        assert len(detail) < 100


@given(ALMOST_SPECS)
def test_no_library_speaks(given_spec: Any):
    try:
        read_spec(given_spec)
    except Invalid as refusal:
        details = [problem["detail"] for problem in refusal.errors]
        pointers = [problem["pointer"] for problem in refusal.errors]
        assert len(set(pointers)) == len(pointers)
        assert not [d for d in details if "nput" in d or "not permitted" in d or "required" in d]
