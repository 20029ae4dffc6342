"""Learners on texts and pairs of them: Adagrad, as it is written, on slots that are bounded."""

from itertools import combinations

import numpy as np
import pytest

from tests.solver.streams import blocks
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.regressor import AdaptiveRegressor, predict_values
from wolfstream.solver.adaptive.text_slots import (
    CONSTANT,
    CROSSED,
    MOST_SLOTS,
    MOST_WEIGHTS,
    TextWeights,
    entries,
    joined,
)
from wolfstream.solver.adaptive.texts import TextLearners, text_scores
from wolfstream.solver.adaptive.view import predict_classes

STEPS = (0.3, 1.0)


def rows(seed=1, n=300, values=(3, 5, 8), missing=0.1):
    """Codes (n, texts), of which some are missing, and one-hot targets (n, 3)."""
    random = np.random.default_rng(seed)
    codes = np.stack([random.integers(0, k, n) for k in values], axis=1).astype(np.float64)
    codes[random.random(codes.shape) < missing] = np.nan
    return codes, np.eye(3)[random.integers(0, 3, n)]


def learner_of(codes, *, regression=False, targets=3):
    learner = TextLearners(STEPS, codes.shape[1], regression=regression)
    if not regression:
        learner.meet(targets - 1)
    return learner


def learn(learner, codes, Y, length=50, weight=None):
    weight = np.ones(len(Y)) if weight is None else weight
    parts = [learner.absorb(codes[p], Y[p], weight[p]) for p in blocks(len(Y), length)]
    return np.concatenate(parts)


def plain_adagrad(codes, Y, weight, step, *, regression, rescaled=None):
    """One row at a time, in dictionaries of texts and pairs.

    rescaled: before which row all is learned in other units, the factor, and the shift.
    """
    W, G, least = {}, {}, 1.0 if regression else 1e-12
    scores = np.zeros(Y.shape)
    for i, row in enumerate(codes):
        if rescaled is not None and i == rescaled[0]:
            _, factor, shift = rescaled
            W = {one: factor * w for one, w in W.items()}
            W["constant"] = W["constant"] + shift
            G = {one: factor * factor * g for one, g in G.items()}
        texts = [(j, code) for j, code in enumerate(row) if not np.isnan(code)]
        known = [*texts, *combinations(texts, 2)]
        x = {"constant": 1.0} | {one: 1.0 / np.sqrt(len(known)) for one in known}
        scores[i] = sum(W.get(one, 0.0) * v for one, v in x.items())
        said = scores[i] if regression else 1.0 / (1.0 + np.exp(-scores[i]))
        residual = weight[i] * (Y[i] - said)
        for one, v in x.items():
            G[one] = G.get(one, 0.0) + (residual * v) ** 2
            W[one] = W.get(one, 0.0) + step * residual * v / np.sqrt(G[one] + least)
    return scores


@pytest.mark.parametrize("length", [1, 7, 300])
@pytest.mark.parametrize("regression", [False, True])
def test_they_are_adagrad_one_row_at_a_time(regression, length):
    codes, Y = rows()
    Y = Y[:, :1] if regression else Y
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(Y))
    scores = learn(learner_of(codes, regression=regression), codes, Y, length, weight)
    for e, step in enumerate(STEPS):
        expected = plain_adagrad(codes, Y, weight, step, regression=regression)
        np.testing.assert_allclose(scores[:, e], expected, rtol=1e-9, atol=1e-9)


def test_a_view_says_what_learning_would_and_stays():
    """Also once so many slots have changed that all weights are copied again."""
    random = np.random.default_rng(3)
    codes = random.integers(0, 300, (600, 3)).astype(np.float64)
    Y = np.eye(3)[random.integers(0, 3, 600)]
    learner, taken = learner_of(codes), []
    for part in blocks(600, 5):
        view = learner.view()
        said = text_scores(view, codes[part])
        taken.append((view, part, said))
        learned = learn(learner, codes[part], Y[part])[0]
        np.testing.assert_allclose(learned, said[0], rtol=1e-12, atol=1e-13)
    assert len({id(view.older) for view, _, _ in taken}) > 1
    for view, part, said in taken:
        np.testing.assert_array_equal(text_scores(view, codes[part]), said)


def test_a_text_that_is_missing_has_no_part():
    codes, Y = rows(missing=0.0)
    learner = learner_of(codes)
    learn(learner, codes, Y)
    before = learner.state()
    none = np.full((1, 3), np.nan)
    np.testing.assert_array_equal(learn(learner, none, Y[:1])[0], before["texts_W"][0])
    after = learner.state()
    np.testing.assert_array_equal(after["texts_slots"], before["texts_slots"])
    np.testing.assert_array_equal(after["texts_W"][1:], before["texts_W"][1:])


@pytest.mark.parametrize("regression", [False, True])
def test_a_restored_learner_goes_on_bit_for_bit(regression):
    codes, Y = rows()
    Y = Y[:, :1] if regression else Y
    one, other = (learner_of(codes, regression=regression) for _ in range(2))
    learn(one, codes[:200], Y[:200])
    one.view()
    other.restore(one.state())
    np.testing.assert_array_equal(
        learn(one, codes[200:], Y[200:]), learn(other, codes[200:], Y[200:])
    )
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, other.state()[name])
    assert one.nbytes == other.nbytes


@pytest.mark.parametrize("slots", [[1, MOST_SLOTS + 2], [-1, 1], [4, 4]])
def test_weights_of_slots_that_there_are_not_are_refused(slots):
    learner = TextLearners(STEPS, 2, regression=True)
    state = {"texts_slots": np.array(slots), "texts_W": np.ones((2, 2, 1))}
    with pytest.raises(ValueError, match="slots"):
        learner.restore(state | {"texts_G": np.ones((2, 2, 1))})


def test_many_classes_share_fewer_slots():
    """What was learned stays, but for texts that share a slot from then on."""
    codes, Y = rows(missing=0.0)
    learner = learner_of(codes)
    learn(learner, codes, Y)
    before = text_scores(learner.view(), codes)
    learner.meet(100)
    assert learner.W.size <= (MOST_WEIGHTS + 2 * 101) * len(STEPS)
    after = text_scores(learner.view(), codes)
    same = np.abs(after[:, :, :2] - before[:, :, :2]).max(axis=(1, 2)) < 1e-9
    assert same.mean() > 0.7
    np.testing.assert_allclose(after[same][:, :, 2:], before[same][:, :, 2:].repeat(99, axis=2))


def test_a_row_of_many_texts_crosses_the_first_ones():
    slots, x = entries(np.arange(40.0)[None], MOST_SLOTS)
    assert slots.shape == x.shape == (1, 1 + 40 + CROSSED * (CROSSED - 1) // 2)
    np.testing.assert_allclose(x[0, 1:] @ x[0, 1:], 1.0)


def test_the_same_text_in_two_columns_is_two():
    slots, _ = entries(np.array([[7.0, 7.0]]), MOST_SLOTS)
    assert len(set(slots[0].tolist())) == 4


def test_a_learner_of_other_units_answers_as_before_in_these():
    codes, Y = rows()
    learner = learner_of(codes, regression=True)
    learn(learner, codes, Y[:, :1])
    before = text_scores(learner.view(), codes)
    learner.rescale(0.5, 3.0)
    np.testing.assert_allclose(text_scores(learner.view(), codes), 0.5 * before + 3.0)


@pytest.mark.parametrize("factor", [0.5, 20.0])
@pytest.mark.parametrize("regression", [False, True])
def test_a_learner_goes_on_as_adagrad_in_other_units(regression, factor):
    """Also where the logits of classes are far from 0."""
    codes, Y = rows()
    Y = Y[:, :1] if regression else Y
    learner, weight = learner_of(codes, regression=regression), np.ones(len(Y))
    before = learn(learner, codes[:150], Y[:150])
    learner.rescale(factor, 3.0)
    scores = np.concatenate([before, learn(learner, codes[150:], Y[150:])])
    for e, step in enumerate(STEPS):
        expected = plain_adagrad(
            codes, Y, weight, step, regression=regression, rescaled=(150, factor, 3.0)
        )
        np.testing.assert_allclose(scores[:, e], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("logit", [-1e4, -600.0, -30.0, 30.0, 1e4])
def test_a_label_that_was_certain_moves_nothing(logit):
    learner = learner_of(np.zeros((1, 1)))
    weights = np.full((1, len(STEPS), 3), logit)
    learner.replace(TextWeights(np.array([CONSTANT]), weights, np.ones(weights.shape)))
    said = float(logit > 0.0)
    none, certain = np.full((1, 1), np.nan), np.full((1, 3), said)
    learner.absorb(none, certain, np.ones(1))
    np.testing.assert_allclose(learner.weights.W, weights, rtol=0.0, atol=1e-12)


def test_learners_of_parts_become_one_whose_classes_are_in_another_order():
    codes, Y = rows(missing=0.0)
    one, other = (learner_of(codes) for _ in range(2))
    learn(one, codes[::2], Y[::2])
    learn(other, codes[::2], Y[::2][:, [1, 0, 2]])
    merged = joined([one.weights, other.weights], [np.array([0, 1, 2]), np.array([1, 0, 2])])
    np.testing.assert_allclose(merged.W, one.weights.W, atol=1e-12)
    np.testing.assert_allclose(merged.G, 2.0 * one.weights.G, atol=1e-12)


def crossed_table(seed=4, n=900):
    """Two texts of twelve values, of which only both together tell anything."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 12, (n, 2)).astype(np.float64)
    value = random.choice([-1.0, 1.0], (12, 12))[codes[:, 0].astype(int), codes[:, 1].astype(int)]
    return codes, value


def test_a_bank_of_classes_learns_what_two_texts_say_together():
    codes, value = crossed_table()
    bank = AdaptiveClassifier(1, texts=2)
    X, y = np.zeros((len(codes), 1)), (value > 0.0).astype(np.int64)
    answers = bank.absorb(X, y, codes=codes)
    assert np.mean(answers.prediction[-300:] == y[-300:]) > 0.9
    said = predict_classes(bank.view(), X[:50], codes=codes[:50])
    assert np.mean(said.prediction == y[:50]) > 0.9
    assert sum(kind.get("features") == "texts" for kind in bank.kinds) == 3


def test_a_bank_of_numbers_learns_what_two_texts_say_together():
    codes, value = crossed_table()
    bank = AdaptiveRegressor(1, texts=2)
    X, y = np.zeros((len(codes), 1)), 1000.0 + 50.0 * value
    answers = bank.absorb(X, y, codes=codes)
    assert np.abs(answers[-300:] - y[-300:]).mean() < 15.0
    said = predict_values(bank.view(), X[:50], codes=codes[:50])
    assert np.abs(said.prediction - y[:50]).mean() < 15.0


@pytest.mark.parametrize("make", [AdaptiveClassifier, AdaptiveRegressor])
def test_banks_give_the_same_answers_for_blocks_of_any_length(make):
    codes, value = crossed_table(n=200)
    X = np.random.default_rng(5).normal(size=(200, 1))
    y = (value > 0.0).astype(np.int64) if make is AdaptiveClassifier else value
    found = []
    for length in (1, 64):
        bank = make(1, texts=2)
        parts = [bank.absorb(X[p], y[p], codes=codes[p]) for p in blocks(200, length)]
        found.append(bank.expert_weights().weight)
        assert len(parts) == -(-200 // length)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-9)
