"""Prequential scores of classes and of numbers, over all samples and over the last 1,000."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, log_loss, r2_score

from wolfstream.service.heads.class_scores import Hits, kappa
from wolfstream.service.heads.value_scores import Errors, score_in

RECENT = 1000


def in_parts(score: Any, columns: Any, size: int) -> Any:
    """Count parts of so many samples; each column is an array of all of them."""
    for start in range(0, len(columns[0]), size):
        score.count(*(column[start : start + size] for column in columns))
    return score


def pairs(n: int, classes: int, seed: int = 0) -> Any:
    """Labels of some classes, the first the most frequent, and predictions that mostly agree."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, n) * random.integers(0, 2, n)
    predicted = np.where(random.random(n) < 0.6, labels, random.integers(0, classes, n))
    return labels, predicted


def values(n: int, seed: int = 0) -> Any:
    """A random walk, and predictions of it."""
    random = np.random.default_rng(seed)
    y = random.standard_normal(n).cumsum() + 1e3
    return y, y + random.standard_normal(n) * np.linspace(1.0, 30.0, n)


@pytest.mark.parametrize("score", [Hits, Errors])
def test_nothing_is_judged_at_first(score: Any):
    plain = score().to_dict()
    assert plain.pop("samples") == 0
    assert set(plain.values()) == {None}


@pytest.mark.parametrize("n", [1, 999, 1000, 1001, 2500])
@pytest.mark.parametrize("classes", [2, 7, 100])
def test_hits_are_shares_of_right_predictions_and_their_excess_over_chance(n: int, classes: int):
    labels, predicted = pairs(n, classes)
    if n > RECENT:  # other frequencies than of late
        labels[:RECENT], predicted[:RECENT] = (c // 2 for c in pairs(RECENT, classes, seed=1))
    scores = in_parts(Hits(), (labels, predicted), 400).to_dict()
    assert scores["samples"] == n
    for prefix, part in (("", slice(None)), ("recent_", slice(-RECENT, None))):
        of_part = labels[part], predicted[part]
        alone = len(np.unique(of_part)) == 1
        agreement = None if alone else pytest.approx(cohen_kappa_score(*of_part))
        assert scores[f"{prefix}accuracy"] == np.equal(*of_part).mean()
        assert scores[f"{prefix}kappa"] == agreement


def test_the_rules_without_features_are_judged_on_the_same_samples():
    labels = np.sort(np.random.default_rng(0).integers(0, 5, 2500))  # long runs of a label
    labels[1000:1400] = np.arange(400) % 3
    predicted = np.where(np.arange(2500) < 40, -1, labels)  # nothing is predicted at first
    scores = in_parts(Hits(), (labels, predicted), 77).to_dict()
    last = labels[1:] == labels[:-1]
    # Doubled counts: of labels that are equally frequent, the one that was so first stays.
    majority, most = [], int(labels[0])
    for i in range(1, 2500):
        counts = 2 * np.bincount(labels[:i], minlength=5)
        counts[most] += 1
        most = int(np.argmax(counts))
        majority.append(most == labels[i])
    assert scores["samples"] == 2460
    assert scores["last_label_accuracy"] == last[39:].mean()
    assert scores["recent_last_label_accuracy"] == last[-RECENT:].mean()
    assert scores["majority_accuracy"] == np.mean(majority[39:])
    assert scores["recent_majority_accuracy"] == np.mean(majority[-RECENT:])


def test_kappa_temporal_formula():
    labels = np.array([0, 0, 1, 1, 0, 0])
    assert in_parts(Hits(), (labels, labels), 6).to_dict()["kappa_temporal"] == 1.0
    before = np.array([-1, 0, 0, 1, 1, 0])
    assert in_parts(Hits(), (labels, before), 6).to_dict()["kappa_temporal"] == 0.0
    always = np.array([-1, 1, 1, 1, 1, 1])  # 3 errors, the label before makes 2
    assert in_parts(Hits(), (labels, always), 6).to_dict()["kappa_temporal"] == -0.5
    assert in_parts(Hits(), (labels[1:2], labels[1:2]), 1).to_dict()["kappa_temporal"] == 1.0


def test_log_loss_is_that_of_the_labels_probabilities():
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 1500)
    probability = random.dirichlet(np.ones(3), 1500)
    columns = labels, np.argmax(probability, axis=1), probability
    scores = in_parts(Hits(), columns, 64).to_dict()
    assert scores["log_loss"] == pytest.approx(log_loss(labels, probability))
    recent = log_loss(labels[-RECENT:], probability[-RECENT:])
    assert scores["recent_log_loss"] == pytest.approx(recent)
    none = in_parts(Hits(), columns[:2], 64).to_dict()
    assert none["log_loss"] is none["recent_log_loss"] is None


def test_a_label_of_no_probability_costs_what_it_can_at_most():
    score = Hits()
    score.count(np.array([1]), np.array([0]), np.array([[1.0, 0.0]]))
    assert score.to_dict()["log_loss"] == pytest.approx(-np.log(1e-15))


def agreement_of(labels: list[int], predicted: list[int]) -> float | None:
    columns = np.array(labels), np.array(predicted)
    scores = in_parts(Hits(), columns, len(labels)).to_dict()
    assert scores["kappa"] == scores["recent_kappa"]
    found: float | None = scores["kappa"]
    return found


def test_kappa_where_it_is_known_without_counting():
    assert agreement_of([0, 1, 2, 0], [0, 1, 2, 0]) == 1.0
    assert agreement_of([0, 1, 0, 1], [1, 0, 1, 0]) == -1.0
    assert agreement_of([0, 0, 1, 1], [0, 1, 0, 1]) == 0.0
    assert agreement_of([0, 1, 1, 1], [1, 1, 1, 1]) == 0.0  # always the most frequent class
    assert agreement_of([0, 0], [1, 1]) == 0.0


def test_kappa_says_nothing_where_all_is_of_one_class():
    assert agreement_of([0, 0, 0], [0, 0, 0]) is None
    assert agreement_of([3], [3]) is None


def test_recent_kappa_omits_departed_classes():
    labels, predicted = np.zeros((2, 2 * RECENT), int)
    labels[:RECENT] = 1
    scores = in_parts(Hits(), (labels, predicted), 7).to_dict()
    assert (scores["kappa"], scores["recent_kappa"]) == (0.0, None)
    assert (scores["accuracy"], scores["recent_accuracy"]) == (0.5, 1.0)


def test_kappa_is_exact_where_the_counts_are_beyond_float64():
    n = 10**10
    assert kappa([n, n], [n, n], 2 * n - 1) == 1 - 1 / n
    assert kappa([10**17, 1], [10**17, 1], 10**17 + 1) == 1.0


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 4)), min_size=1, max_size=30),
    st.integers(1, 30),
)
def test_the_cutting_of_hits_does_not_matter(given_pairs: list[tuple[int, int]], size: int):
    labels, predicted = np.array(given_pairs).T
    columns = labels, predicted, np.random.default_rng(0).dirichlet(np.ones(5), len(labels))
    whole = in_parts(Hits(), columns, len(labels))
    assert in_parts(Hits(), columns, size).state() == whole.state()
    value = whole.to_dict()["kappa"]
    assert value is None or -1.0 <= value <= 1.0


@pytest.mark.parametrize(("score", "columns"), [(Hits, pairs(3700, 7)), (Errors, values(3700))])
def test_a_copy_and_a_restored_score_go_on_by_themselves(score: Any, columns: Any):
    def shown(one: Any) -> Any:
        return one.state(), one.to_dict(), one.latest(RECENT)

    score_so_far = in_parts(score(), [column[:2300] for column in columns], 400)
    so_far, whole = shown(score_so_far), shown(in_parts(score(), columns, 400))
    restored = score_in(json.loads(json.dumps(score_so_far.state())))
    for one in (score_so_far, restored):
        copied = one.copy()
        in_parts(one, [column[2300:] for column in columns], 37)
        assert (shown(one), shown(copied)) == (whole, so_far)
        in_parts(copied, [column[2300:] for column in columns], 999)
        assert (shown(one), shown(copied)) == (whole, whole)


def test_more_than_a_thousand_samples_at_once_leave_the_last_thousand():
    columns = pairs(4321, 7)
    assert in_parts(Hits(), columns, 4321).to_dict() == in_parts(Hits(), columns, 10).to_dict()


def test_a_head_without_scores_has_one_of_no_samples():
    assert score_in({"samples": 3}).to_dict() == Hits().to_dict()


def test_errors_are_mean_and_root_of_mean_square_and_unexplained_variance():
    y, predicted = values(2500)
    scores = in_parts(Errors(), (y, predicted), 400).to_dict()
    assert scores["samples"] == 2500
    for prefix, part in (("", slice(None)), ("recent_", slice(-RECENT, None))):
        errors = (predicted - y)[part]
        assert scores[f"{prefix}mae"] == pytest.approx(np.abs(errors).mean())
        assert scores[f"{prefix}rmse"] == pytest.approx(np.sqrt(np.square(errors).mean()))
        assert scores[f"{prefix}r2"] == pytest.approx(r2_score(y[part], predicted[part]))


def test_errors_of_the_rules_without_features_are_of_the_same_samples():
    y, predicted = values(2500)
    predicted[:3] = np.nan
    scores = in_parts(Errors(), (y, predicted), 71).to_dict()
    last = y[2:-1] - y[3:]
    mean = y.cumsum()[2:-1] / np.arange(3, 2500) - y[3:]
    assert scores["samples"] == 2497
    for rule, errors in (("last_value", last), ("running_mean", mean)):
        for prefix, of_part in (("", errors), ("recent_", errors[-RECENT:])):
            root = np.sqrt(np.square(of_part).mean())
            assert scores[f"{prefix}{rule}_mae"] == pytest.approx(np.abs(of_part).mean())
            assert scores[f"{prefix}{rule}_rmse"] == pytest.approx(root)


def test_equal_targets_have_no_variance_to_explain():
    y = np.full(5, 3.0)
    assert in_parts(Errors(), (y, y + 1.0), 5).to_dict()["r2"] is None


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=30), st.integers(1, 30))
def test_the_cutting_into_parts_does_not_matter(targets: list[float], size: int):
    y = np.array(targets)
    scores = in_parts(Errors(), (y, -y), len(y)).to_dict()
    assert in_parts(Errors(), (y, -y), size).to_dict() == scores
    assert all(value is None or np.isfinite(value) for value in scores.values())


@pytest.mark.parametrize(
    ("score", "columns"), [(Hits, pairs(1500, 3)), (Errors, values(1500))], ids=["Hits", "Errors"]
)
def test_a_state_goes_through_json_to_the_last_bit(score: Any, columns: Any):
    live = in_parts(score(), columns, 100)
    again = score_in(json.loads(json.dumps(live.state(), allow_nan=False)))
    assert again.to_dict() == live.to_dict()
    for one in (live, again):
        in_parts(one, [column[:70] for column in columns], 70)
    assert again.to_dict() == live.to_dict()
    assert again.state() == live.state()


@pytest.mark.parametrize(
    ("score", "columns"), [(Hits, pairs(100, 3)), (Errors, values(100))], ids=["Hits", "Errors"]
)
def test_a_state_stays_as_it_was(score: Any, columns: Any):
    """A snapshot is written by another thread while the model goes on learning."""
    live = in_parts(score(), columns, 100)
    state = live.state()
    before = json.dumps(state)
    in_parts(live, columns, 50)
    assert json.dumps(state) == before


@pytest.mark.parametrize(
    ("score", "columns"), [(Hits, pairs(100, 3)), (Errors, values(100))], ids=["Hits", "Errors"]
)
def test_a_copy_stays_as_it_was(score: Any, columns: Any):
    live = in_parts(score(), columns, 100)
    kept = live.copy()
    before = kept.state()
    in_parts(live, columns, 50)
    assert kept.state() == before


def test_a_row_without_probability_has_no_log_loss():
    score = Hits()
    score.count(np.array([0, 1]), np.array([0, 0]))
    assert score.to_dict()["log_loss"] is None
    known, unknown = [0.25, 0.75], [np.nan, np.nan]
    score.count(np.array([1, 1, 0]), np.array([1, -1, 0]), np.array([known, known, unknown]))
    assert score.to_dict()["log_loss"] == -math.log(0.75)
    assert score.to_dict()["recent_log_loss"] == -math.log(0.75)
    assert score.state()["log_loss"] == [-math.log(0.75), 1]
