"""Prequential scores of classes and of numbers, over all samples and over the last 1,000."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.scores import Errors, Hits

RECENT = 1000


def in_parts(score: Any, values: Any, size: int) -> Any:
    for start in range(0, len(values), size):
        score.count(values[start : start + size])
    return score


def test_nothing_is_judged_at_first():
    assert Hits().told() == {"samples": 0, "accuracy": None, "recent_accuracy": None}
    assert Errors().told() == {
        "samples": 0,
        "mae": None,
        "rmse": None,
        "recent_mae": None,
        "recent_rmse": None,
    }


def test_hits_are_shares_of_right_predictions():
    hits = np.random.default_rng(0).random(2500) < 0.3
    assert in_parts(Hits(), hits, 400).told() == {
        "samples": 2500,
        "accuracy": hits.mean(),
        "recent_accuracy": hits[-RECENT:].mean(),
    }


def test_errors_are_mean_and_root_of_mean_square():
    errors = np.random.default_rng(0).standard_normal(2500) * np.linspace(1, 30, 2500)
    told = in_parts(Errors(), errors, 400).told()
    assert told["samples"] == 2500
    assert told["mae"] == pytest.approx(np.abs(errors).mean())
    assert told["rmse"] == pytest.approx(np.sqrt(np.square(errors).mean()))
    assert told["recent_mae"] == pytest.approx(np.abs(errors[-RECENT:]).mean())
    assert told["recent_rmse"] == pytest.approx(np.sqrt(np.square(errors[-RECENT:]).mean()))


@given(st.lists(st.floats(-2e100, 2e100), min_size=1, max_size=30), st.integers(1, 30))
def test_the_cutting_into_parts_does_not_matter(errors: list[float], size: int):
    values = np.array(errors)
    told = in_parts(Errors(), values, len(values)).told()
    assert in_parts(Errors(), values, size).told() == told
    assert all(np.isfinite(value) for value in told.values())


@pytest.mark.parametrize(
    ("score", "values"),
    [(Hits, np.arange(1500) % 3 == 0), (Errors, np.random.default_rng(0).standard_normal(1500))],
)
def test_a_state_goes_through_json_to_the_last_bit(score: Any, values: Any):
    live, again = in_parts(score(), values, 100), score()
    again.restore(json.loads(json.dumps(live.state())))
    assert again.told() == live.told()
    for one in (live, again):
        one.count(values[:70])
    assert again.told() == live.told()
    assert again.state() == live.state()
