"""The working set under a head of numbers: answers, description, and what the bank hears of it."""

from typing import Any

import numpy as np
import pytest

from tests.service.specs import read_papers_spec
from tests.service.streams import curve, part
from wolfstream.service.heads.kinds import build
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec

SPEC: dict[str, Any] = {"task": "regression", "working_set": {"max_size": 300}, "asset": None}


def head_of(**changes: Any) -> Any:
    return build("working_set", read_papers_spec(SPEC | changes))


def test_answers_say_what_was_kept_and_by_which_step() -> None:
    answers = head_of().absorb(*curve(400)[:2])
    assert answers.prediction[0] is None
    assert {type(value) for value in answers.prediction[1:]} == {float}
    assert answers.prediction == answers.decision
    assert set(answers.step) >= {"toward", "away"}
    assert 0 < sum(answers.admitted) < 400
    assert answers.part(3, 5)["admitted"] == answers.admitted[3:5]


def test_the_answer_is_the_prediction_of_the_moment_before() -> None:
    head, samples = head_of(), curve(200)
    head.absorb(*part(samples, 0, 1)[:2])
    for i in range(1, 200):
        one = part(samples, i, i + 1)
        predicted = head.view().predict(one.X).prediction
        assert head.absorb(*one[:2]).prediction == pytest.approx(predicted, rel=1e-6)


def test_a_description_has_sizes_and_a_certificate() -> None:
    head = head_of()
    assert head.view().stats["size"] == 0
    assert head.view().stats["gap"] is None
    head.absorb(*curve(1500)[:2])
    stats = head.view().stats
    assert 0 < stats["support_vectors"] <= stats["size"] <= 300
    assert 0.0 <= stats["gap"] < 0.1 * stats["objective"]
    assert stats["relative_gap"] == pytest.approx(stats["gap"] / stats["objective"])
    assert stats["gamma"] > 0.0
    assert "horizon" not in stats
    assert stats["prequential"]["r2"] > 0.8


def test_weights_are_learned() -> None:
    samples = curve(300)
    heads = [head_of(), head_of()]
    for head, weight in zip(heads, (None, np.full(300, 9.0)), strict=True):
        head.absorb(samples.X, samples.y, weight=weight)
    said = [head.view().stats["objective"] for head in heads]
    assert said[1] > said[0]


def test_the_bank_listens_to_it() -> None:
    given = SPEC | {"asset": {"dimension": 16}}
    learner = Learner(Model(1, "m", read_spec(given)))
    samples = curve(256)
    for start in range(0, 256, 64):
        learner.absorb("working_set", part(samples, start, start + 64))
    learner.publish()
    names = {one["learner"] for one in learner.model.published.heads["adaptive"].learners}
    assert "working_set" in str(names)


def test_named_rows_and_sparse_rows_are_learned() -> None:
    from tests.service.streams import word_counts

    samples: Samples = word_counts(200)
    learner = Learner(Model(1, "m", read_papers_spec(SPEC | {"kernel": {"type": "linear"}})))
    learner.absorb("working_set", samples)
    learner.publish()
    assert learner.model.published.heads["working_set"].stats["size"] > 0
