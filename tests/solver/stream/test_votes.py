"""What heads say of rows, in the order of another head's classes."""

from typing import Any

import numpy as np

from wolfstream.solver.frank_wolfe.pairs import coupled_scores
from wolfstream.solver.rows.answers import Decisions
from wolfstream.solver.stream.votes import HeadAnswer, Vote, class_scores, values
from wolfstream.solver.working_set.predictions import SetPredictions


def vote_of(classes: list[Any] | None, *decisions: Any) -> Vote:
    """The vote in decisions, one array for each part."""
    known = None if classes is None else tuple(classes)
    parts = [np.array(decision, np.float64) for decision in decisions]
    return HeadAnswer(known, [Decisions(np.zeros(len(part)), part) for part in parts]).vote


def test_a_decision_of_two_classes_is_for_the_second_one():
    vote = vote_of(["a", "b"], [2.0, np.nan])
    np.testing.assert_array_equal(vote.scores, [[-1.0, 1.0], [np.nan, np.nan]])


def test_scores_may_lack_later_classes():
    vote = vote_of(["a", "b", "c"], [[1.0, 2.0]], [[3.0, 4.0, 5.0], [np.nan] * 3])
    expected = [[1.0, 2.0, np.nan], [3.0, 4.0, 5.0], [np.nan] * 3]
    np.testing.assert_array_equal(vote.scores, expected)


def test_parts_before_the_third_class_speak_for_two():
    vote = vote_of(["a", "b", "c"], [np.nan, 2.0], [[3.0, 4.0, 5.0]])
    expected = [[np.nan] * 3, [-1.0, 1.0, np.nan], [3.0, 4.0, 5.0]]
    np.testing.assert_array_equal(vote.scores, expected)


def test_a_working_set_has_scores_beside_its_decisions():
    margin, q = np.array([[0.5, -0.25, 1.0]]), np.array([2.0, 1.0, -4.0])
    said = SetPredictions(np.zeros(1, np.int64), np.array([[2.0, 1.0, 0.0]]), margin * np.abs(q), q)
    coupled = coupled_scores(margin, 3).tolist()
    assert HeadAnswer(("a", "b", "c"), [said]).vote.scores.tolist() == coupled
    of_two = SetPredictions(
        np.zeros(1, np.int64), np.array([0.5]), np.array([[0.5]]), np.array([2.0])
    )
    coupled = coupled_scores(np.array([[0.25]]), 2).tolist()
    assert HeadAnswer(("a", "b"), [of_two]).vote.scores.tolist() == coupled
    counted = HeadAnswer(("a", "b", "c"), [said._replace(pairwise=None)])
    assert counted.vote.scores.tolist() == [[2.0, 1.0, 0.0]]


def test_numbers_have_no_classes():
    np.testing.assert_array_equal(vote_of(None, [1.5, np.nan]).scores, [1.5, np.nan])


def test_scores_are_put_in_the_order_of_the_listener():
    votes = {"working_set": vote_of(["b", "a"], [4.0])}
    scores = class_scores(votes, ("working_set", "asset"), ["a", "b", "c"])
    expected = [[[2.0, -2.0, np.nan], [np.nan] * 3]]
    np.testing.assert_array_equal(scores, expected)


def test_spellings_of_a_label_are_one_class():
    scores = class_scores({"asset": vote_of([True, 0], [1.0])}, ("asset",), [1, 0])
    np.testing.assert_array_equal(scores, [[[-0.5, 0.5]]])


def test_without_votes_there_is_nothing():
    assert class_scores({}, ("asset",), ["a"]) is None
    assert values({}, ("asset",)) is None


def test_a_voter_that_is_silent_has_no_value():
    votes = {"asset": vote_of(None, [1.0, 2.0])}
    found = values(votes, ("semiparametric", "asset"))
    np.testing.assert_array_equal(found, [[np.nan, 1.0], [np.nan, 2.0]])
