"""One-versus-one: votes of all pairs, ties broken by margins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.multiclass import _ovr_decision_function

from tests.solver.differences import central
from wolfstream.solver.frank_wolfe.pairs import (
    SLOPE,
    classes_of,
    coupled_scores,
    coupled_slopes,
    one_versus_one_scores,
    pair_classes,
    pairs_of,
)


@st.composite
def margins(draw, min_classes=2, max_classes=6):
    n_classes = draw(st.integers(min_classes, max_classes))
    n_pairs = n_classes * (n_classes - 1) // 2
    values = st.one_of(st.floats(-50.0, 50.0), st.sampled_from([-1.0, 0.0, 1.0]))
    row = st.lists(values, min_size=n_pairs, max_size=n_pairs)
    return np.array(draw(st.lists(row, min_size=1, max_size=5))), n_classes


def votes_and_sums(margin, n_classes):
    """By counting: each pair's vote, and the sum of the margins in favour of each class."""
    votes, sums = np.zeros((2, len(margin), n_classes))
    for i, row in enumerate(margin):
        for value, (a, b) in zip(row, pairs_of(n_classes), strict=True):
            votes[i, b if value > 0.0 else a] += 1
            sums[i, b] += value
            sums[i, a] -= value
    return votes, sums


class TestPairs:
    def test_are_all_pairs_in_the_order_of_the_later_class(self):
        assert pairs_of(4) == [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]

    @pytest.mark.parametrize("n_classes", range(2, 8))
    def test_are_numbered_by_a_formula(self, n_classes):
        for number, (a, b) in enumerate(pairs_of(n_classes)):
            assert number == b * (b - 1) // 2 + a

    @pytest.mark.parametrize("n_classes", range(2, 8))
    def test_a_new_class_only_appends(self, n_classes):
        before = pairs_of(n_classes)
        assert pairs_of(n_classes + 1)[: len(before)] == before

    @pytest.mark.parametrize("n_classes", [0, 1])
    def test_need_two_classes(self, n_classes):
        assert pairs_of(n_classes) == []


class TestScores:
    @given(margins())
    def test_are_votes_with_ties_broken_by_margins(self, case):
        margin, n_classes = case
        votes, sums = votes_and_sums(margin, n_classes)
        scores = one_versus_one_scores(margin, n_classes)
        expected = votes + sums / (3.0 * (np.abs(sums) + 1.0))
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)

    @given(margins())
    def test_margins_never_outweigh_a_vote(self, case):
        margin, n_classes = case
        votes, _ = votes_and_sums(margin, n_classes)
        scores = one_versus_one_scores(margin, n_classes)
        assert np.all(np.abs(scores - votes) < 1.0 / 3.0)

    @given(margins(min_classes=3))
    def test_are_those_of_scikit_learn(self, case):
        margin, n_classes = case
        # There the pairs are in the order of the earlier class.
        order = [
            pairs_of(n_classes).index((a, b))
            for a in range(n_classes)
            for b in range(a + 1, n_classes)
        ]
        theirs = margin[:, order]
        expected = _ovr_decision_function((theirs > 0.0).astype(int), theirs, n_classes)
        scores = one_versus_one_scores(margin, n_classes)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)


class TestCoupling:
    def test_finds_the_probabilities_that_pairs_were_made_of(self):
        p = np.random.default_rng(0).dirichlet(np.ones(5), 20)
        odds = [np.log(p[:, b] / p[:, a]) for a, b in pairs_of(5)]
        scores = coupled_scores(np.stack(odds, axis=1) / SLOPE, 5)
        np.testing.assert_allclose(scores, np.log(p), rtol=1e-9)

    def test_clear_loss_outweighs_narrow_wins(self):
        # In the order of `pairs_of`: class 0 wins its pairs with 1 and 2, and loses that with 3.
        margin = np.array([[-0.1, -0.1, 0.1, 3.0, -0.5, -0.5]])
        assert one_versus_one_scores(margin, 4)[0, 0] > one_versus_one_scores(margin, 4)[0, 1]
        assert coupled_scores(margin, 4)[0].argmin() == 0

    def test_of_huge_margins_is_finite(self):
        scores = coupled_scores(np.array([[1e300, -1e300, 1e-300]]), 3)
        assert np.all(np.isfinite(scores))

    def test_slopes_are_central_differences(self):
        random = np.random.default_rng(1)
        margin, direction = random.normal(size=6), random.normal(size=4)
        expected = central(lambda m: direction @ coupled_scores(m[None], 4)[0], margin)
        np.testing.assert_allclose(coupled_slopes(margin, direction), expected, rtol=1e-6)


def predicted_class(margin, n_classes):
    return np.argmax(one_versus_one_scores(margin, n_classes), axis=1)


class TestPrediction:
    @given(margins(min_classes=3))
    def test_has_the_most_votes_and_among_these_the_largest_margins(self, case):
        margin, n_classes = case
        votes, sums = votes_and_sums(margin, n_classes)
        for i, said in enumerate(predicted_class(margin, n_classes)):
            assert votes[i, said] == votes[i].max()
            tied = votes[i] == votes[i].max()
            assert sums[i, said] >= sums[i][tied].max() - 1e-9

    def test_a_cycle_of_votes_is_decided_by_margins(self):
        # 0 beats 1, 1 beats 2, 2 beats 0: one vote each.
        assert predicted_class(np.array([[-1.0, 5.0, -1.0]]), 3).tolist() == [2]
        assert predicted_class(np.array([[-5.0, 1.0, -1.0]]), 3).tolist() == [0]
        assert predicted_class(np.array([[-1.0, 1.0, -5.0]]), 3).tolist() == [1]

    @pytest.mark.parametrize(("margin", "said"), [(-0.1, 0), (0.0, 0), (0.1, 1)])
    def test_of_two_classes_is_the_sign(self, margin, said):
        assert predicted_class(np.array([[margin]]), 2).tolist() == [said]


@pytest.mark.parametrize("n_classes", [2, 3, 10, 1000])
def test_pairs_tell_how_many_classes_they_are_of(n_classes: int):
    assert classes_of(len(pair_classes(n_classes))) == n_classes
