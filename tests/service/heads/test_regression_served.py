"""A regression head: numbers in, numbers out, scored by how far they are off."""

from typing import Any

import numpy as np
import pytest

from tests.service.specs import read_papers_spec
from tests.service.streams import curve, part
from tests.solver.streams import sparse
from wolfstream.service.errors import InvalidSamples, Untrained
from wolfstream.service.heads.kinds import build
from wolfstream.service.heads.protocol import Answers
from wolfstream.service.heads.regression import RegressionHead
from wolfstream.service.model.draft import Draft, Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples

SPEC: dict[str, Any] = {
    "task": "regression",
    "kernel": {"gamma": 0.3},
    "asset": {"dimension": 64, "lambda": 1e-3},
}
AUTO = {"task": "regression", "asset": {"dimension": 32, "lambda": 1e-3}}
LINEAR = {"task": "regression", "kernel": {"type": "linear"}}
each_spec = pytest.mark.parametrize("spec", [SPEC, AUTO, LINEAR], ids=["fixed", "auto", "linear"])


def head_of(spec: dict[str, Any] = SPEC) -> RegressionHead:
    head = build("asset", read_papers_spec(spec))
    assert isinstance(head, RegressionHead)
    return head


def absorb_in_parts(head: RegressionHead, samples: Samples, size: int) -> list[Answers]:
    n = len(samples.y)
    return [head.absorb(*part(samples, i, min(i + size, n))[:2]) for i in range(0, n, size)]


class TestAnswers:
    @each_spec
    def test_prediction_and_decision_are_one_number_a_row(self, spec: dict[str, Any]):
        answers = head_of(spec).absorb(*curve(200)[:2])
        assert answers.prediction[0] is None
        assert {type(value) for value in answers.prediction[1:]} == {float}
        assert answers.prediction == answers.decision
        assert answers.part(3, 5) == {
            "prediction": answers.prediction[3:5],
            "decision": answers.decision[3:5],
        }

    @each_spec
    def test_the_answer_is_the_prediction_of_the_moment_before(self, spec: dict[str, Any]):
        head, samples = head_of(spec), curve(150)
        head.absorb(*part(samples, 0, 1)[:2])
        for i in range(1, 150):
            one = part(samples, i, i + 1)
            predicted = head.view().predict(one.X).prediction
            assert head.absorb(*one[:2]).prediction == pytest.approx(predicted, rel=1e-9)

    @each_spec
    def test_the_cutting_of_the_stream_does_not_matter(self, spec: dict[str, Any]):
        samples = curve(300)
        at_once = head_of(spec).absorb(*samples[:2]).prediction
        cut = [v for a in absorb_in_parts(head_of(spec), samples, 7) for v in a.prediction]
        assert cut[1:] == pytest.approx(at_once[1:], rel=1e-9)

    def test_it_learns(self):
        """Targets around 200 with a standard deviation of 41, of which the noise is 5."""
        head = head_of()
        head.absorb(*curve(6000)[:2])
        held_back = curve(500, seed=1)
        said = head.view().predict(held_back.X).prediction
        assert np.mean(np.abs(np.array(said) - held_back.y)) < 12.0
        assert head.view().stats["prequential"]["recent_mae"] < 14.0

    @pytest.mark.parametrize("scale", [1e-100, 1e-12, 1.0, 1e12, 9e99])
    def test_targets_of_any_size(self, scale: float):
        samples = curve(400)
        unit = samples.y / np.abs(samples.y).max()
        spec = SPEC | {"asset": {"dimension": 64, "epsilon": 0.0}}
        head, other = head_of(spec), head_of(spec)
        said = head.absorb(samples.X, unit * scale).prediction[128:]
        expected = other.absorb(samples.X, unit).prediction[128:]
        np.testing.assert_allclose(np.array(said) / scale, expected, rtol=1e-3, atol=1e-4)
        assert all(np.isfinite(v) for v in head.view().stats["prequential"].values())


class TestScores:
    def test_the_first_sample_is_not_judged(self):
        head = head_of()
        before = head.view().stats["prequential"]
        assert before["samples"] == 0
        assert {value for name, value in before.items() if name != "samples"} == {None}
        head.absorb(*curve(1)[:2])
        assert head.view().stats["prequential"] == before

    def test_they_measure_the_predictions_that_were_made(self):
        head, samples = head_of(), curve(1700)
        answers = absorb_in_parts(head, samples, 400)
        said = np.array([value for answer in answers for value in answer.prediction[:]][1:])
        errors = said.astype(float) - samples.y[1:]
        told = head.view().stats["prequential"]
        assert told["samples"] == 1699
        assert told["mae"] == pytest.approx(np.abs(errors).mean())
        assert told["rmse"] == pytest.approx(np.sqrt(np.square(errors).mean()))
        assert told["recent_mae"] == pytest.approx(np.abs(errors[-1000:]).mean())
        assert told["recent_rmse"] == pytest.approx(np.sqrt(np.square(errors[-1000:]).mean()))


class TestView:
    def test_nothing_learned(self):
        view = head_of().view()
        assert view.classes is None
        assert view.lacks
        assert view.cost(5, 10) == 0
        with pytest.raises(Untrained, match="no sample: one is needed"):
            view.predict(np.zeros((1, 3)))

    def test_one_sample_is_enough(self):
        head = head_of()
        head.absorb(np.ones((1, 3)), np.array([7.0]))
        view = head.view()
        assert not view.lacks
        assert view.predict(np.ones((1, 3))).prediction == pytest.approx([7.0])

    @each_spec
    def test_it_does_not_change_when_the_head_learns_on(self, spec: dict[str, Any]):
        head, samples, views = head_of(spec), curve(600), []
        for start in range(0, 600, 50):
            head.absorb(*part(samples, start, start + 50)[:2])
            views.append((head.view(), head.view().predict(samples.X[:20])))
        for view, said in views:
            assert view.predict(samples.X[:20]) == said

    def test_a_description_of_the_model_has_no_classes(self):
        learner = Learner(Model(1, "m", read_papers_spec(AUTO)))
        learner.absorb("asset", curve(200))
        learner.publish()
        told = learner.model.describe()
        assert told["spec"]["task"] == "regression"
        assert told["heads"].keys() == {"asset"}
        asset = told["heads"]["asset"]
        assert asset.keys() == {
            "algorithm", "features", "dimension", "steps", "bytes", "gamma", "prequential",
            "changes", "calibration",
        }  # fmt: skip
        assert (asset["steps"], asset["dimension"]) == (200, 32)
        assert asset["bytes"] > 32 * 8

    def test_features_that_fourier_has_not_met_are_left_out(self):
        head, samples = head_of(), curve(100)
        head.absorb(sparse(samples.X), samples.y)
        wider = np.hstack([samples.X[:20], 5 * np.ones((20, 2))])
        view = head.view()
        assert view.predict(sparse(wider)) == view.predict(sparse(wider[:, :3]))


class TestCheck:
    def check(self, head: RegressionHead, X: Any) -> None:
        head.check(Samples(X, np.zeros(len(X))), set(), 10)

    def test_rows_too_large_for_the_kernel_are_named(self):
        X = np.ones((50, 2))
        X[[3, 7]] = 1e60
        with pytest.raises(InvalidSamples) as caught:
            self.check(head_of(), X)
        assert [item["row"] for item in caught.value.errors] == [3, 7]

    def test_no_number_of_targets_is_too_large(self):
        learner = Learner(Model(1, "m", read_papers_spec(SPEC)))
        Draft(learner, Limits(classes=2, features=10)).add("asset", curve(500))

    def test_checking_learns_nothing(self):
        head = head_of()
        self.check(head, np.ones((5, 3)))
        assert head.view().lacks


class TestState:
    @each_spec
    def test_scores_are_part_of_it(self, spec: dict[str, Any]):
        head, again = head_of(spec), head_of(spec)
        head.absorb(*curve(1500)[:2])
        again.restore(*head.state())
        for one in (head, again):
            one.absorb(*curve(300, seed=1)[:2])
        assert again.view().stats == head.view().stats

    def test_a_state_is_a_copy(self):
        head, again = head_of(AUTO), head_of(AUTO)
        samples = curve(100)
        head.absorb(*samples[:2])
        said = head.view().predict(samples.X)
        plain, arrays = head.state()
        head.absorb(*curve(200, seed=1)[:2])
        again.restore(plain, arrays)
        assert again.view().predict(samples.X) == said
