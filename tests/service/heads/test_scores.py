"""Prequential scores of classes and of numbers, over all samples and over the last 1,000."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from service.heads.scores import Errors, Hits, kappa

RECENT = 1000


def in_parts(score: Any, values: Any, size: int) -> Any:
    """Count numbers, or pairs of a label and a prediction."""
    for start in range(0, len(values), size):
        part = values[start : start + size]
        score.count(*part.T) if part.ndim == 2 else score.count(part)
    return score


def pairs(n: int, classes: int, seed: int = 0) -> Any:
    """Labels of some classes, the first the most frequent, and predictions that mostly agree."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, n) * random.integers(0, 2, n)
    said = np.where(random.random(n) < 0.6, labels, random.integers(0, classes, n))
    return np.stack([labels, said], axis=1)


def test_nothing_is_judged_at_first():
    assert Hits().to_dict() == {
        "samples": 0,
        "accuracy": None,
        "recent_accuracy": None,
        "kappa": None,
        "recent_kappa": None,
    }
    assert Errors().to_dict() == {
        "samples": 0,
        "mae": None,
        "rmse": None,
        "recent_mae": None,
        "recent_rmse": None,
    }


@pytest.mark.parametrize("n", [1, 999, 1000, 1001, 2500])
@pytest.mark.parametrize("classes", [2, 7, 100])
def test_hits_are_shares_of_right_predictions_and_their_excess_over_chance(n: int, classes: int):
    values = pairs(n, classes)
    if n > RECENT:
        values[:RECENT] = pairs(RECENT, classes, seed=1) // 2  # other frequencies than of late
    hits = values[:, 0] == values[:, 1]
    alone = len(np.unique(values)) == 1
    assert in_parts(Hits(), values, 400).to_dict() == {
        "samples": n,
        "accuracy": hits.mean(),
        "recent_accuracy": hits[-RECENT:].mean(),
        "kappa": None if alone else pytest.approx(cohen_kappa_score(*values.T)),
        "recent_kappa": None if alone else pytest.approx(cohen_kappa_score(*values[-RECENT:].T)),
    }


def said_of(labels: list[int], said: list[int]) -> float | None:
    told = in_parts(Hits(), np.stack([labels, said], axis=1), len(labels)).to_dict()
    assert told["kappa"] == told["recent_kappa"]
    kappa: float | None = told["kappa"]
    return kappa


def test_kappa_where_it_is_known_without_counting():
    assert said_of([0, 1, 2, 0], [0, 1, 2, 0]) == 1.0
    assert said_of([0, 1, 0, 1], [1, 0, 1, 0]) == -1.0
    assert said_of([0, 0, 1, 1], [0, 1, 0, 1]) == 0.0
    assert said_of([0, 1, 1, 1], [1, 1, 1, 1]) == 0.0  # always the most frequent class
    assert said_of([0, 0], [1, 1]) == 0.0


def test_kappa_says_nothing_where_all_is_of_one_class():
    assert said_of([0, 0, 0], [0, 0, 0]) is None
    assert said_of([3], [3]) is None


def test_a_class_that_left_the_last_thousand_is_not_in_their_kappa():
    values = np.zeros((2 * RECENT, 2), int)
    values[:RECENT, 0] = 1
    told = in_parts(Hits(), values, 7).to_dict()
    assert (told["kappa"], told["recent_kappa"]) == (0.0, None)
    assert (told["accuracy"], told["recent_accuracy"]) == (0.5, 1.0)


def test_kappa_is_exact_where_the_counts_are_beyond_float64():
    n = 10**10
    assert kappa([n, n], [n, n], 2 * n - 1) == 1 - 1 / n
    assert kappa([10**17, 1], [10**17, 1], 10**17 + 1) == 1.0


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30),
    st.integers(1, 30),
)
def test_the_cutting_of_hits_does_not_matter(given_pairs: list[tuple[int, int]], size: int):
    values = np.array(given_pairs)
    whole = in_parts(Hits(), values, len(values))
    assert in_parts(Hits(), values, size).state() == whole.state()
    value = whole.to_dict()["kappa"]
    assert value is None or -1.0 <= value <= 1.0


def test_a_state_from_before_kappa_begins_anew():
    score = Hits()
    score.restore({"judged": 3, "correct": 2, "recent": [1, 0, 1]})
    assert score.to_dict() == Hits().to_dict()


def test_errors_are_mean_and_root_of_mean_square():
    errors = np.random.default_rng(0).standard_normal(2500) * np.linspace(1, 30, 2500)
    told = in_parts(Errors(), errors, 400).to_dict()
    assert told["samples"] == 2500
    assert told["mae"] == pytest.approx(np.abs(errors).mean())
    assert told["rmse"] == pytest.approx(np.sqrt(np.square(errors).mean()))
    assert told["recent_mae"] == pytest.approx(np.abs(errors[-RECENT:]).mean())
    assert told["recent_rmse"] == pytest.approx(np.sqrt(np.square(errors[-RECENT:]).mean()))


@given(st.lists(st.floats(-2e100, 2e100), min_size=1, max_size=30), st.integers(1, 30))
def test_the_cutting_into_parts_does_not_matter(errors: list[float], size: int):
    values = np.array(errors)
    told = in_parts(Errors(), values, len(values)).to_dict()
    assert in_parts(Errors(), values, size).to_dict() == told
    assert all(np.isfinite(value) for value in told.values())


@pytest.mark.parametrize(
    ("score", "values"),
    [(Hits, pairs(1500, 3)), (Errors, np.random.default_rng(0).standard_normal(1500))],
)
def test_a_state_goes_through_json_to_the_last_bit(score: Any, values: Any):
    live, again = in_parts(score(), values, 100), score()
    again.restore(json.loads(json.dumps(live.state())))
    assert again.to_dict() == live.to_dict()
    for one in (live, again):
        in_parts(one, values[:70], 70)
    assert again.to_dict() == live.to_dict()
    assert again.state() == live.state()
