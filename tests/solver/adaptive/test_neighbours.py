"""Nearest neighbours among the last rows against a plain search, and in a bank."""

import functools

import numpy as np
import pytest

from tests.solver import oracle_bank
from tests.solver.bank_parts import learners_of, scores_before
from tests.solver.streams import blocks
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.learners import LearnersView, score
from wolfstream.solver.adaptive.neighbours import CAPACITY
from wolfstream.solver.adaptive.regressor import AdaptiveRegressor

N, COLUMNS = CAPACITY + 150, 3
RANDOM = np.random.default_rng(0)
PHI = np.concatenate([np.ones((N, 1)), RANDOM.normal(size=(N, COLUMNS))], axis=1)
LABELS = np.eye(4)[RANDOM.integers(0, 4, N)]
TARGETS = RANDOM.normal(size=(N, 1))


WEIGHT = np.array([1.0, 0.0, 0.25], np.float32)


@functools.cache
def plain_search(regression):
    """Scores of each row by a search that weighs columns alike and by one that does not."""
    Y = TARGETS if regression else LABELS
    plain, weighted = (
        oracle_bank.Neighbours((2, 7), COLUMNS, Y.shape[1], regression) for _ in range(2)
    )
    weighted.weight = WEIGHT
    return [
        np.concatenate([plain.learn(phi, y), weighted.learn(phi, y)])
        for phi, y in zip(PHI, Y, strict=True)
    ]


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("length", [1, 32, N])
def test_scores_are_those_of_a_plain_search(length, regression):
    Y = TARGETS if regression else LABELS
    learners = learners_of(1 + COLUMNS, neighbours=(2, 7), regression=regression)
    learners.neighbours.weigh(WEIGHT)
    scores = [scores_before(learners, PHI[part], Y[part]) for part in blocks(N, length)]
    np.testing.assert_allclose(np.concatenate(scores), plain_search(regression), atol=1e-12)


def scores_of(view, Phi):
    alone = LearnersView(np.empty(0), np.empty((0, 4), np.int64), view, None, None, None)
    scores = np.empty((len(Phi), 2 * len(view.counts), view.targets))
    score(alone, Phi, None, None, scores)
    return scores


def test_view_scores_as_the_learner_and_stays():
    learners = learners_of(1 + COLUMNS, neighbours=(5,))
    scores_before(learners, PHI[:200], LABELS[:200])
    view = learners.neighbours.view(4)
    before = scores_of(view, PHI[200:250])
    next_one = scores_before(learners, PHI[200:250], LABELS[200:250])[:1]
    np.testing.assert_array_equal(before[:1], next_one)
    np.testing.assert_array_equal(scores_of(view, PHI[200:250]), before)


def test_room_follows_rows():
    learners = learners_of(1 + COLUMNS, neighbours=(5,))
    rooms = []
    for part in blocks(N, 50):
        scores_before(learners, PHI[part], LABELS[part])
        rooms.append(len(learners.neighbours.memory.target))
    assert (rooms[0], rooms[-1]) == (64, CAPACITY)
    assert rooms == sorted(rooms)


def test_restored_ring_has_room_for_its_rows_and_goes_on():
    learners, restored = (learners_of(1 + COLUMNS, neighbours=(5,)) for _ in range(2))
    scores_before(learners, PHI[:200], LABELS[:200])
    state = learners.neighbours.state()
    assert state["neighbours_rows"].shape == (COLUMNS, CAPACITY)
    restored.neighbours.restore(state)
    assert len(restored.neighbours.memory.target) == 200
    later = slice(200, N)
    np.testing.assert_array_equal(
        scores_before(restored, PHI[later], LABELS[later]),
        scores_before(learners, PHI[later], LABELS[later]),
    )


def test_rescaled_scores_are_in_new_units():
    both = [learners_of(1 + COLUMNS, neighbours=(3,), regression=True) for _ in range(2)]
    for one in both:
        scores_before(one, PHI[:100], TARGETS[:100])
    both[1].rescale(3.0, -2.0)
    scores = [scores_before(one, PHI[100:101], TARGETS[100:101]) for one in both]
    np.testing.assert_allclose(scores[1], 3.0 * scores[0] - 2.0)


def test_many_small_regions_are_learned():
    random = np.random.default_rng(1)
    X = random.uniform(size=(5000, 2))
    labels = random.integers(0, 4, (12, 12))
    y = labels[tuple((12 * X).astype(np.int64).T)]
    order = {label: code for code, label in enumerate(dict.fromkeys(y.tolist()))}
    y = np.array([order[label] for label in y.tolist()])
    right = AdaptiveClassifier(2).absorb(np.sqrt(12.0) * (X - 0.5), y).prediction == y
    assert right[3000:].mean() > 0.75


def test_old_rows_follow_permuted_classes():
    random = np.random.default_rng(2)
    centres = 5.0 * random.normal(size=(4, COLUMNS))
    y, moved = random.integers(0, 4, 800), np.array([2, 0, 3, 1])
    now = np.where(np.arange(800) < 700, y, moved[y])
    learners = learners_of(1 + COLUMNS, neighbours=(5, 25))
    rows = centres[y] + random.normal(size=(800, COLUMNS))
    scores_before(learners, np.column_stack([np.ones(800), rows]), np.eye(4)[now])
    for _ in range(2):
        learners.neighbours.follow(moved)
        right = learners.neighbours.memory.target[:800] == moved[y]
        assert right.mean() > 0.99


def test_labels_stay_without_evidence():
    learners = learners_of(1 + COLUMNS, neighbours=(5,))
    scores_before(learners, PHI, LABELS)
    learner = learners.neighbours
    before = learner.memory.target.copy()
    learner.follow(np.array([1, 0, 2, 3]))
    np.testing.assert_array_equal(learner.memory.target, before)


def test_irrelevant_columns_weigh_little():
    random = np.random.default_rng(5)
    X = random.normal(size=(3000, 12))
    y = np.sin(2.0 * X[:, 0]) + np.abs(X[:, 1])
    learner = AdaptiveRegressor(12)
    learner.absorb(X, y)
    weight = learner.learners.neighbours.weight[1]
    assert weight[2:].max() < 0.3 * weight[:2].min()
    losses = {
        (line["weights"], line["count"]): line["recent_loss"]
        for line in learner.expert_weights().rows()
        if line["learner"] == "neighbours"
    }
    assert losses["relevance", 5] < 0.8 * losses["equal", 5]
