"""Gaussian naive Bayes on shared columns, against normal densities estimated row by row."""

import numpy as np
import pytest

from tests.solver.bank_parts import learners_of, scores_before
from tests.solver.differences import central
from tests.solver.oracle_bank import NaiveBayes as PlainNaiveBayes
from tests.solver.streams import blocks
from wolfstream.solver.adaptive.classifier import AdaptiveClassifier
from wolfstream.solver.adaptive.combination import new_combination
from wolfstream.solver.adaptive.gradients import class_gradient
from wolfstream.solver.adaptive.merge import merge
from wolfstream.solver.adaptive.naive_bayes import BayesCompanion, bayes_gradient, weights_of
from wolfstream.solver.adaptive.settings import CLASSIFICATION, FOREVER, Pins, pinned
from wolfstream.solver.adaptive.view import predict_classes

HORIZONS = (FOREVER, 100.0)
COLUMNS = 4


def rows(n=500, seed=1):
    """Rows of three classes that differ in their spreads alone, and one-hot labels (n, 4)."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, n)
    spread = np.exp(random.normal(size=(3, COLUMNS)))
    return random.normal(size=(n, COLUMNS)) * spread[labels] / 2.0, np.eye(4)[labels]


def learned(Z, Y, length=32, weight=None):
    """Learners of rows in blocks, and the scores."""
    learners = learners_of(1 + COLUMNS, naive_bayes=HORIZONS)
    learners.meet(3)
    weight = np.ones(len(Z)) if weight is None else weight
    parts = blocks(len(Z), length)
    scores = [scores_of(learners, Z[part], Y[part], weight[part]) for part in parts]
    return learners, np.concatenate(scores)


def scores_of(learners, Z, Y, weight):
    """The scores (n, learners, K) of rows, which are then learned."""
    return scores_before(learners, np.column_stack([np.ones(len(Z)), Z, 7.0 * Z]), Y, weight)


@pytest.mark.parametrize("length", [1, 7, 32, 500])
def test_scores_are_those_of_normal_densities(length):
    Z, Y = rows()
    _, scores = learned(Z, Y, length)
    for h, horizon in enumerate(HORIZONS):
        plain = PlainNaiveBayes(COLUMNS, 4, horizon)
        expected = [plain.learn(np.append(1.0, z), y) for z, y in zip(Z, Y, strict=True)]
        np.testing.assert_allclose(scores[:, h], expected, rtol=1e-8, atol=1e-8)


def test_a_weight_counts_as_so_many_equal_rows():
    Z, Y = rows(16)
    weight = np.ones(16)
    weight[5] = 3.0
    heavy, _ = learned(Z, Y, weight=weight)
    again = [*range(5), 5, 5, 5, *range(6, 16)]
    many, _ = learned(Z[again], Y[again])
    np.testing.assert_allclose(heavy.bayes.sums, many.bayes.sums, rtol=1e-12)


@pytest.mark.parametrize("at", [5, 45, 300])
def test_what_is_restored_goes_on_bit_for_bit(at):
    Z, Y = rows()
    learner, _ = learned(Z[:at], Y[:at])
    other = learners_of(1 + COLUMNS, naive_bayes=HORIZONS)
    other.restore(learner.state())
    rest = slice(at, at + 40)
    found = [scores_of(one, Z[rest], Y[rest], np.ones(40)) for one in (learner, other)]
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(learner.bayes.sums, other.bayes.sums)


@pytest.mark.parametrize("value", [0.0, 7.0, 100.0, 1e-9])
def test_constants_leave_scores_finite_and_classes_alike(value):
    Z = np.full((400, COLUMNS), value)
    learner, scores = learned(Z, np.eye(4)[np.arange(400) % 2])
    assert np.isfinite(scores).all()
    assert np.isfinite(learner.bayes.W).all()
    np.testing.assert_allclose(scores[-1, 0, 0], scores[-1, 0, 1], atol=0.1)


def powers_of(Z):
    """(1, z, z^2) of rows, in which scores are linear."""
    return np.concatenate([np.ones((len(Z), 1)), Z, Z * Z], axis=1)


def test_slopes_are_those_of_the_scores():
    Z, Y = rows()
    learner, _ = learned(Z, Y)
    direction = np.random.default_rng(2).normal(size=(len(HORIZONS), 3))

    def score(z):
        scores = learner.bayes.W[:, 0] @ powers_of(z[None])[0]
        return (scores[:, :3] * direction).sum()

    np.testing.assert_allclose(
        bayes_gradient(learner.bayes.W, Z[0], direction), central(score, Z[0]), rtol=1e-5
    )


def test_wide_rows_have_none():
    for columns in (None, 257):
        learners = AdaptiveClassifier(columns).learners
        assert learners.bayes is None
        assert "naive_bayes" not in [kind["learner"] for kind in learners.kinds]


def bank(**pins):
    """A bank in which naive Bayes says most."""
    own = {"horizons": [], "steps": [0.01], "neighbours": []} | pins
    return AdaptiveClassifier(COLUMNS, pinned(CLASSIFICATION, Pins(**own)))


def spread_rows(n, seed=3):
    random = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    return random.normal(size=(n, COLUMNS)) * np.where(codes == 0, 0.5, 1.5)[:, None], codes


def test_gradients_beside_neighbours_that_never_change():
    X, codes = spread_rows(200)
    one = bank(neighbours=[1000])
    one.absorb(X, codes)
    view, at = one.view(), np.array([0.4, -0.7, 0.2, 1.1])

    def odds(x):
        p = predict_classes(view, x[None]).probability[0]
        return np.log(p[1] / p[0])

    found = class_gradient(view, at, np.array([-1.0, 1.0]), None).row
    assert np.abs(found).max() > 0.1
    np.testing.assert_allclose(found, central(odds, at), rtol=1e-5, atol=1e-8)


def following():
    """Naive Bayes of rows of three classes, what has it follow, and temperatures of 7 experts."""
    learners, _ = learned(*rows())
    combination = new_combination(np.ones(7), ())
    return learners, BayesCompanion(learners.bayes, slice(3, 5)), combination


def test_sums_follow_classes_that_change_places():
    learners, one, combination = following()
    learner = learners.bayes
    before = learner.sums.copy()
    one.relabel(np.array([1, 2, 0]), combination)
    np.testing.assert_array_equal(learner.sums[0, 0, [1, 2, 0, 3]], before[0, 0])
    np.testing.assert_array_equal(learner.sums[1], before[1])
    np.testing.assert_array_equal(learner.W, weights_of(learner.sums))
    np.testing.assert_array_equal(combination.beta, np.ones(7))


def test_classes_are_given_the_older_of_the_sums_that_were_kept():
    learners, one, combination = following()
    learner = learners.bayes
    Z, Y = rows(seed=2)
    kept = []
    for k in range(4):
        combination.beta[:], combination.curvature[:] = 2.0 + k, 10.0 + k
        if k < 3:
            one.remember(combination)
            kept.append(learner.sums.copy())
        scores_of(learners, Z[100 * k :][:100], Y[100 * k :][:100], np.ones(100))
    before, wanted = learner.sums.copy(), kept[1]
    learners.meet(4)
    one.meet(4)
    one.relabel(np.array([1, 2, 0, 3]), combination)
    np.testing.assert_array_equal(learner.sums[0, 0, [1, 2, 0]], wanted[0, 0, :3])
    np.testing.assert_array_equal(learner.sums[1, 0, :3], before[1, 0, :3])
    np.testing.assert_array_equal(combination.beta, [5.0, 5.0, 5.0, 3.0, 5.0, 5.0, 5.0])
    np.testing.assert_array_equal(combination.curvature, [13, 13, 13, 11, 13, 13, 13])
    # They are given once.
    one.relabel(np.array([2, 0, 1, 3]), combination)
    np.testing.assert_array_equal(learner.sums[0, 0, :3], wanted[0, 0, :3])


def moving_rows(n=2400, at=1600):
    """Rows whose two classes change places."""
    X, codes = spread_rows(n)
    X += 1.5 * codes[:, None]
    codes[at:] = 1 - codes[at:]
    return X, codes


def moving_bank():
    return bank(horizons=[np.inf, 300.0], naive_bayes=[np.inf])


def sums_of(one):
    assert one.learners.bayes is not None
    return one.learners.bayes.sums[0, 0]


def test_a_bank_undoes_what_was_learned_after_all_labels_moved():
    X, codes = moving_rows()
    one, kept, found = moving_bank(), [0, 0], None
    for part in blocks(2400, 32):
        one.absorb(X[part], codes[part])
        watched = one.watches.each[0]
        if watched.former and watched.age == 0:
            kept = [kept[-1], part.stop]
        elif found is None and part.start >= 1600 and not watched.former:
            found = part.stop
            undone = slice(kept[0], found)
    assert found is not None
    assert undone.start <= 1600 < undone.stop < 1800
    # As if those rows had never come, and the labels before them had been the present ones.
    codes[: undone.start] = 1 - codes[: undone.start]
    powers = powers_of(one.inputs.absorb(X)[0][:, 1 : 1 + COLUMNS])
    powers, codes = np.delete(powers, undone, axis=0), np.delete(codes, undone)
    expected = [powers[codes == code].sum(axis=0) for code in (0, 1)]
    np.testing.assert_allclose(sums_of(one)[:2], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("at", [1500, 1630, 1660])
def test_a_bank_that_is_restored_relabels_bit_for_bit(at):
    X, codes = moving_rows()
    one, other = moving_bank(), moving_bank()
    one.absorb(X[:at], codes[:at])
    other.restore(one.state())
    expected, found = (each.absorb(X[at:], codes[at:]).probability for each in (one, other))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(sums_of(other), sums_of(one))


def test_naive_bayes_weighs_little_before_it_was_right():
    one = AdaptiveClassifier(COLUMNS)
    of_bayes = [kind["learner"] == "naive_bayes" for kind in one.kinds]
    weight = one.expert_weights().weight
    assert weight.sum() == pytest.approx(1.0)
    stackers = [kind["learner"] == "stacker" for kind in one.kinds]
    np.testing.assert_allclose(weight[of_bayes], 0.1 * weight[stackers][0])


def test_experts_that_are_alike_share_their_weight():
    one = AdaptiveClassifier(COLUMNS)
    weight = one.expert_weights().weight
    alike = [kind["learner"] == "ridge" and kind["features"] == "all" for kind in one.kinds]
    assert sum(alike) == 9
    np.testing.assert_allclose(weight[alike], weight[-1] / 3.0)


def test_merged_sums_are_those_of_all_rows():
    X, codes = spread_rows(640)
    parts = [bank(), bank()]
    for k, part in enumerate(parts):
        part.absorb(X[k * 320 : (k + 1) * 320], codes[k * 320 : (k + 1) * 320])
    merged, whole = merge(parts, [np.arange(2)] * 2, bank()), bank()
    whole.absorb(X, codes)
    found = [one.learners.bayes for one in (merged, whole)]
    np.testing.assert_allclose(found[0].sums[0], found[1].sums[0], rtol=1e-12)
    np.testing.assert_allclose(found[0].W[0], found[1].W[0], rtol=1e-9)
    assert found[0].rows == 640
