"""A head: what it answers for what it learned, how it is scored, and what it refuses."""

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from tests.service.specs import read_papers_spec
from tests.service.streams import part
from tests.solver.streams import sparse
from wolfstream.service.errors import InvalidSamples, Untrained
from wolfstream.service.heads.classification import ClassificationHead, ClassificationView
from wolfstream.service.heads.kinds import build
from wolfstream.service.heads.protocol import Answers
from wolfstream.service.heads.value_scores import Hits
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.frank_wolfe.steps import STEP_NAMES

HEADS: tuple[HeadName, ...] = ("working_set", "asset")
each_head = pytest.mark.parametrize("name", HEADS)
RECENT = 1000
FIXED = {"kernel": {"gamma": 0.5}, "asset": {"dimension": 16}}
AUTO = {"asset": {"dimension": 16}}
NYSTROM = {"features": "nystrom", "dimension": 20}


def head_of(name: HeadName, spec: dict[str, Any] | None = None) -> ClassificationHead[Any]:
    head = build(name, read_papers_spec(FIXED if spec is None else spec))
    assert isinstance(head, ClassificationHead)
    return head


def check(head: ClassificationHead[Any], X: Any) -> None:
    head.check(Samples(X, ["a"] * len(X)), set(), 10)


def rows(n: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((n, 3))


def stream(n: int, labels: list[Label], seed: int = 0) -> Samples:
    """Overlapping clusters, one to a label; each of the labels comes early."""
    random = np.random.default_rng(seed)
    centres = 1.5 * random.standard_normal((len(labels), 3))
    codes = [*range(len(labels)), *random.integers(0, len(labels), n).tolist()][:n]
    X = centres[codes] + random.standard_normal((n, 3))
    return Samples(X, [labels[code] for code in codes])


def typed(labels: Any) -> list[Any]:
    """Labels with their types, because True == 1."""
    return [(type(label), label) for label in labels]


def absorb_in_parts(head: ClassificationHead[Any], samples: Samples, size: int) -> list[Answers]:
    n = len(samples.y)
    return [head.absorb(*part(samples, i, min(i + size, n))[:2]) for i in range(0, n, size)]


class TestAnswers:
    @each_head
    @pytest.mark.parametrize("spec", [FIXED, AUTO], ids=["fixed", "auto"])
    @pytest.mark.parametrize("n", [1, 2, 3, 300])
    def test_every_column_has_a_value_for_every_sample(
        self, name: HeadName, spec: dict[str, Any], n: int
    ):
        answers = head_of(name, spec).absorb(*stream(n, ["a", "b"])[:2])
        columns = answers.part(0, n).values()
        assert len(columns) == (4 if name == "working_set" else 2)
        assert all(len(column) == n for column in columns)

    def test_the_working_set_says_what_it_did(self):
        answers = head_of("working_set").absorb(*stream(200, ["a", "b", "c"])[:2])
        assert answers.admitted is not None
        assert answers.step is not None
        assert {type(value) for value in answers.admitted} == {bool}
        assert answers.admitted[0] is True
        assert answers.step[0] == "initial"
        assert {True, False} == set(answers.admitted)
        kinds = {kind for step in answers.step for kind in step.split("+")}
        assert kinds <= set(STEP_NAMES) - {"none"}
        assert {"initial", "toward"} <= kinds
        assert any("+" in step for step in answers.step)

    def test_sfw_steps_toward_only(self):
        spec = FIXED | {"working_set": {"algorithm": "sfw", "corrective_steps": 0}}
        answers = head_of("working_set", spec).absorb(*stream(300, ["a", "b"])[:2])
        assert answers.step is not None
        assert set(answers.step) == {"initial", "toward"}

    def test_asset_admits_nothing(self):
        answers = head_of("asset").absorb(*stream(5, ["a", "b"])[:2])
        assert answers.admitted is None
        assert answers.step is None
        assert answers.part(0, 5).keys() == {"prediction", "decision"}

    def test_a_part_is_what_one_request_gets(self):
        answers = head_of("working_set").absorb(*stream(10, ["a", "b"])[:2])
        assert answers.part(4, 6) == {
            "prediction": answers.prediction[4:6],
            "decision": answers.decision[4:6],
            "admitted": answers.admitted[4:6] if answers.admitted else None,
            "step": answers.step[4:6] if answers.step else None,
        }

    @each_head
    def test_values_are_plain(self, name: HeadName):
        answers = head_of(name).absorb(*stream(60, ["a", "b"])[:2])
        assert {type(value) for value in answers.decision[2:]} == {float}
        answers = head_of(name).absorb(*stream(60, [True, 2, "c"])[:2])
        assert {type(value) for row in answers.decision[3:] for value in row} == {float}


class TestTestThenTrain:
    """The prediction is what the model said just before it learned the sample."""

    @each_head
    @pytest.mark.parametrize("spec", [FIXED, AUTO], ids=["fixed", "auto"])
    def test_the_answer_is_the_prediction_of_the_moment_before(
        self, name: HeadName, spec: dict[str, Any]
    ):
        head = head_of(name, spec)
        samples = stream(150, ["a", "b"])
        head.absorb(*part(samples, 0, 2)[:2])
        for i in range(2, 150):
            one = part(samples, i, i + 1)
            predictions = head.view().predict(one.X)
            predicted, decision = predictions.prediction, predictions.decision
            answers = head.absorb(*one[:2])
            assert answers.prediction == predicted
            assert answers.decision == pytest.approx(decision, rel=1e-4, abs=1e-5)

    @each_head
    def test_nothing_is_said_before_two_labels_are_known(self, name: HeadName):
        head = head_of(name)
        answers = head.absorb(rows(5), ["a", "a", "a", "b", "a"])
        assert answers.prediction[:4] == answers.decision[:4] == [None] * 4
        assert answers.prediction[4] in ("a", "b")
        assert isinstance(answers.decision[4], float)

    @each_head
    def test_a_label_is_never_said_before_it_came(self, name: HeadName):
        samples = Samples(rows(8), ["a", "b", "a", "c", "b", "d", "a", "c"])
        answers = head_of(name).absorb(*samples[:2])
        for i, said in enumerate(answers.prediction):
            assert said is None or said in samples.y[:i]

    @each_head
    def test_a_late_class_has_no_score_before_it_came(self, name: HeadName):
        """Once there are three classes, a decision is one score for each class known then."""
        answers = head_of(name).absorb(*Samples(rows(6), ["a", "b", "a", "c", "b", "c"])[:2])
        assert answers.decision[:2] == [None, None]
        assert [len(row) for row in answers.decision[2:]] == [2, 2, 3, 3]

    @each_head
    def test_two_classes_have_one_number_more_have_one_each(self, name: HeadName):
        head = head_of(name)
        first = head.absorb(rows(3), ["a", "b", "a"])
        assert isinstance(first.decision[2], float)
        head.absorb(rows(1), ["c"])
        later = head.absorb(rows(2), ["a", "c"])
        assert [len(row) for row in later.decision] == [3, 3]

    @each_head
    @pytest.mark.parametrize("spec", [FIXED, AUTO], ids=["fixed", "auto"])
    def test_the_cutting_of_the_stream_does_not_matter(self, name: HeadName, spec: dict[str, Any]):
        samples = stream(300, ["a", "b", "c"])
        whole, cut = head_of(name, spec), head_of(name, spec)
        at_once = whole.absorb(*samples[:2])
        in_parts = absorb_in_parts(cut, samples, 7)
        assert at_once.prediction == [said for answer in in_parts for said in answer.prediction]
        X = rows(50, seed=1)
        assert whole.view().predict(X).prediction == cut.view().predict(X).prediction


class TestLabels:
    @each_head
    def test_the_first_spelling_of_a_label_decides(self, name: HeadName):
        head, again = head_of(name), head_of(name)
        X = np.array([[5.0, 0, 0], [-5.0, 0, 0]])
        head.absorb(X, [True, "0"])
        again.absorb(X, [True, "0"])
        for labels in ([1, 0], ["1", False], ["True", "0.0"]) * 6:
            head.absorb(X, labels)
            again.absorb(X, [1, 0])
        view = head.view()
        assert typed(view.classes) == [(bool, True), (str, "0")]
        assert typed(view.predict(X).prediction) == [(bool, True), (str, "0")]
        assert view.predict(X).decision == again.view().predict(X).decision

    @each_head
    def test_labels_come_back_as_they_came(self, name: HeadName):
        labels: list[Label] = [False, 1, "2", "", "no", 2**63 - 1]
        head = head_of(name)
        samples = stream(120, labels)
        answers = head.absorb(*samples[:2])
        assert typed(head.view().classes) == typed(labels)
        assert set(typed(answers.prediction[6:])) <= set(typed(labels))

    @each_head
    def test_classes_stand_in_the_order_in_which_they_came(self, name: HeadName):
        head = head_of(name)
        head.absorb(rows(3), ["z", "a", "z"])
        head.absorb(rows(2), [5, "a"])
        assert head.view().classes == ("z", "a", 5)

    def test_spellings_of_one_label_are_one_unknown_label(self):
        head = head_of("working_set")
        head.absorb(rows(2), [1, "a"])
        assert head.check(Samples(rows(3), [1, "a", 1]), set(), 9) == set()
        new = head.check(Samples(rows(5), [True, "1", 2, "2", "b"]), set(), 9)
        assert new == {2, "b"}


class TestScores:
    def test_nothing_is_judged_at_first(self):
        stats = head_of("working_set").view().stats
        assert stats["prequential"] == Hits().to_dict()

    @each_head
    def test_they_count_the_predictions_that_were_right(self, name: HeadName):
        head = head_of(name)
        samples = stream(RECENT + 700, ["a", "b", "c"])
        answers = absorb_in_parts(head, samples, 400)
        said = [label for answer in answers for label in answer.prediction]
        pairs = [(y, p) for p, y in zip(said, samples.y, strict=True) if p is not None]
        hits = [label == p for label, p in pairs]
        assert len(hits) == RECENT + 698
        assert 0.3 < np.mean(hits) < 1.0
        scores = head.view().stats["prequential"]
        expected = {
            "samples": len(hits),
            "accuracy": sum(hits) / len(hits),
            "recent_accuracy": sum(hits[-RECENT:]) / RECENT,
            "kappa": pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True))),
            "recent_kappa": pytest.approx(cohen_kappa_score(*zip(*pairs[-RECENT:], strict=True))),
        }
        assert {name: scores[name] for name in expected} == expected

    @each_head
    def test_a_label_in_another_spelling_is_right(self, name: HeadName):
        head = head_of(name)
        X = np.array([[5.0, 0, 0], [-5.0, 0, 0]])
        for _ in range(20):
            head.absorb(X, [True, False])
        before = head.view().stats["prequential"]
        answers = head.absorb(X[:1], ["1"])
        assert typed(answers.prediction) == [(bool, True)]
        after = head.view().stats["prequential"]
        assert after["samples"] == before["samples"] + 1
        assert after["accuracy"] * after["samples"] == pytest.approx(
            before["accuracy"] * before["samples"] + 1
        )

    @each_head
    def test_what_could_not_be_predicted_is_not_judged(self, name: HeadName):
        head = head_of(name)
        head.absorb(rows(4), ["a"] * 4)
        assert head.view().stats["prequential"]["samples"] == 0
        head.absorb(rows(1), ["b"])
        assert head.view().stats["prequential"]["samples"] == 0


class TestView:
    @each_head
    def test_nothing_learned(self, name: HeadName):
        view = head_of(name).view()
        assert view.learner.model is None
        assert view.classes == ()
        with pytest.raises(Untrained):
            view.predict(rows(1))

    @each_head
    def test_one_class_is_not_enough(self, name: HeadName):
        head = head_of(name)
        head.absorb(rows(3), ["only"] * 3)
        with pytest.raises(Untrained, match="only"):
            head.view().predict(rows(1))

    @each_head
    @pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "c", 4]])
    def test_a_label_and_a_decision_for_every_row(self, name: HeadName, labels: list[Label]):
        head = head_of(name)
        head.absorb(*stream(100, labels)[:2])
        predictions = head.view().predict(rows(20))
        predicted, decision = predictions.prediction, predictions.decision
        assert len(predicted) == len(decision) == 20
        for said, scores in zip(predicted, decision, strict=True):
            if len(labels) == 2:
                assert said == labels[scores > 0]
            else:
                assert said == labels[int(np.argmax(scores))]
                assert len(scores) == len(labels)

    @each_head
    def test_predicting_changes_nothing(self, name: HeadName):
        head = head_of(name)
        head.absorb(*stream(100, ["a", "b"])[:2])
        view = head.view()
        first = view.predict(rows(20))
        view.predict(rows(300, seed=5))
        assert view.predict(rows(20)) == first
        assert head.view().stats == view.stats

    @each_head
    @pytest.mark.parametrize("spec", [FIXED, AUTO], ids=["fixed", "auto"])
    def test_it_does_not_change_when_the_head_learns_on(self, name: HeadName, spec: Any):
        head = head_of(name, spec | {"working_set": {"max_size": 40}})
        samples = stream(600, ["a", "b", "c"])
        views: list[tuple[ClassificationView, Any]] = []
        for start in range(0, 600, 50):
            head.absorb(*part(samples, start, start + 50)[:2])
            views.append((head.view(), head.view().predict(rows(30))))
        for view, said in views:
            assert view.predict(rows(30)) == said

    def test_stats_of_the_working_set(self):
        head = head_of("working_set", FIXED | {"working_set": {"max_size": 30}})
        assert head.view().stats == {
            "size": 0,
            "support_vectors": 0,
            "objective": None,
            "gap": None,
            "relative_gap": None,
            "prequential": Hits().to_dict(),
        }
        head.absorb(*stream(200, ["a", "b"])[:2])
        stats = head.view().stats
        assert 0 < stats["support_vectors"] <= stats["size"] <= 30
        assert stats["objective"] < 0.0 <= stats["gap"]
        assert stats["bytes"] > 0
        assert "gamma" not in stats

    def test_the_gaps_of_all_pairs_bound_the_sum_of_their_objectives(self):
        head = head_of("working_set", FIXED)
        head.absorb(*stream(200, ["a", "b", "c", "d"])[:2])
        stats, model = head.view().stats, head.view().learner.model
        assert len(model.gap) == 6
        assert stats["objective"] == pytest.approx(-sum(model.q))
        assert stats["gap"] == pytest.approx(sum(model.gap))
        worst = max(gap / q for gap, q in zip(model.gap, model.q, strict=True))
        assert stats["relative_gap"] == pytest.approx(worst)
        assert worst > stats["gap"] / -stats["objective"]

    def test_an_indefinite_kernel_is_named_and_has_no_certificate(self):
        kernel = {"type": "polynomial", "degree": 2, "gamma": 1.0, "coef0": -1.0}
        head = head_of("working_set", {"kernel": kernel})
        samples = stream(300, ["a", "b"])
        head.absorb(*samples[:2])
        view = head.view()
        assert (view.stats["gap"], view.stats["relative_gap"]) == (None, None)
        assert "coef0 >= 0" in view.stats["warning"]
        assert view.gauges["indefinite"] == 1.0
        assert len(set(view.predict(samples.X).prediction)) == 2
        restored = head_of("working_set", {"kernel": kernel})
        restored.restore(*head.state())
        assert restored.view().stats["warning"] == view.stats["warning"]

    def test_a_definite_kernel_has_no_warning(self):
        head = head_of("working_set", FIXED)
        head.absorb(*stream(200, ["a", "b"])[:2])
        assert "warning" not in head.view().stats
        assert head.view().gauges["indefinite"] == 0.0

    def test_stats_of_asset(self):
        head = head_of("asset")
        head.absorb(*stream(200, ["a", "b"])[:2])
        stats = head.view().stats
        assert (stats["algorithm"], stats["features"]) == ("asset", "fourier")
        assert (stats["steps"], stats["dimension"]) == (200, 16)
        assert stats["bytes"] > 16 * 8
        assert "landmarks" not in stats

    def test_stats_of_landmarks(self):
        """The map is made anew of 2, 4, 8, ... first samples, until there are all landmarks."""
        head = head_of("asset", {"kernel": {"gamma": 0.5}, "asset": NYSTROM})
        samples = stream(60, ["a", "b"])
        assert head.view().stats["landmarks"] == {"used": 0, "frozen": False}
        told = []
        for i in range(60):
            head.absorb(*part(samples, i, i + 1)[:2])
            told.append(head.view().stats["landmarks"])
        assert [one["used"] for one in told[1:20:6]] == [2, 8, 8, 20]
        assert [one["frozen"] for one in told] == [False] * 19 + [True] * 41
        assert told[-1]["used"] == head.view().stats["dimension"] == 20

    def test_stats_of_identity(self):
        head = head_of("asset", {"kernel": {"type": "linear"}})
        assert head.view().stats["dimension"] is None
        head.absorb(*stream(10, ["a", "b"])[:2])
        assert head.view().stats["dimension"] == 3

    @each_head
    def test_an_estimated_gamma_is_told(self, name: HeadName):
        head = head_of(name, AUTO)
        assert head.view().stats["gamma"] == 1.0
        samples = stream(300, ["a", "b"])
        head.absorb(*part(samples, 0, 128)[:2])
        frozen = head.view().stats["gamma"]
        squared = ((samples.X[:128, None] - samples.X[None, :128]) ** 2).sum(axis=2)
        assert frozen == pytest.approx(1.0 / (squared.sum() / (128 * 127)))
        head.absorb(*part(samples, 128, 300)[:2])
        assert head.view().stats["gamma"] == frozen

    @each_head
    def test_cost_grows_with_rows_and_features(self, name: HeadName):
        head = head_of(name)
        assert head.view().cost(5, 15) == 0
        head.absorb(*stream(100, ["a", "b"])[:2])
        cost = head.view().cost
        assert 0 < cost(1, 3) < cost(2, 6) < cost(2, 60)

    @each_head
    def test_the_cost_of_sparse_rows_is_that_of_their_numbers(self, name: HeadName):
        head, wide = head_of(name), head_of(name)
        head.absorb(sparse(np.eye(3)[[0, 1] * 50]), ["a", "b"] * 50)
        wide.absorb(sparse(np.eye(3)[[0, 1] * 50])._replace(width=10**9), ["a", "b"] * 50)
        cost = head.view().cost
        assert 0 < cost(1, 3) < cost(2, 6) < 1_000_000
        assert wide.view().cost(1, 3) == cost(1, 3)


LARGEST = {
    "rbf": ({"type": "rbf", "gamma": 1e12}, 1e50),
    "rbf, auto": ({"type": "rbf"}, 1e50),
    "linear": ({"type": "linear"}, 1e50),
    "polynomial": ({"type": "polynomial", "gamma": 1.0, "degree": 3, "coef0": 0.0}, 10 ** (50 / 3)),
    "steep": (
        {"type": "polynomial", "gamma": 1e12, "degree": 8, "coef0": -1e6},
        ((10**12.5 - 1e6) / 1e12) ** 0.5,
    ),
    "flat": ({"type": "polynomial", "gamma": 1e-300, "degree": 1}, 1e50),
    "polynomial, auto": ({"type": "polynomial", "degree": 8}, 1e6),
}
each_kernel = pytest.mark.parametrize(("kernel", "norm"), LARGEST.values(), ids=LARGEST)


class TestCheck:
    """Rows that no kernel value could hold are refused before they are logged."""

    @each_kernel
    def test_a_row_is_refused_by_its_norm(self, kernel: Any, norm: float):
        head = head_of("working_set", {"kernel": kernel})
        unit = np.array([0.6, -0.8])
        check(head, 0.999 * norm * unit[None, :])
        with pytest.raises(InvalidSamples) as caught:
            check(head, np.array([unit, 1.001 * norm * unit, unit]))
        (wrong,) = caught.value.errors
        assert (wrong["row"], wrong["pointer"]) == (1, "/x/1")
        assert f"exceeds {norm:.3g}" in wrong["detail"]

    @each_kernel
    def test_with_the_largest_rows_every_answer_is_finite(self, kernel: Any, norm: float):
        head = head_of("working_set", {"kernel": kernel})
        samples = stream(200, ["a", "b", "c"])
        X = 0.999 * norm * samples.X / np.linalg.norm(samples.X, axis=1)[:, None]
        X[::3] *= 1e-3
        for start in range(0, 200, 20):
            X_part = X[start : start + 20]
            check(head, X_part)
            answers = head.absorb(X_part, samples.y[start : start + 20])
            if start:
                assert np.isfinite(np.array(answers.decision)).all()
        view = head.view()
        assert np.isfinite(view.predict(X).decision).all()
        said, hidden = view.stats["objective"], "rounding hides" in view.stats.get("warning", "")
        assert (view.stats["gap"] is None) is (said is None) is hidden
        assert hidden or (said < 0.0 and np.isfinite([said, view.stats["gap"]]).all())
        assert view.gauges["indefinite"] == 0.0

    @each_head
    @pytest.mark.parametrize("value", [1e51, 1e154, 1e155, 1e200, 1.7e308])
    def test_a_square_that_overflows_is_too_large(self, name: HeadName, value: float):
        with pytest.raises(InvalidSamples):
            check(head_of(name), np.array([[value, value]]))

    def test_every_row_is_named_up_to_a_bound(self):
        X = np.ones((50, 2))
        X[[3, 7]] = 1e60
        with pytest.raises(InvalidSamples) as caught:
            check(head_of("working_set"), X)
        assert [item["row"] for item in caught.value.errors] == [3, 7]
        X[:] = 1e60
        with pytest.raises(InvalidSamples) as caught:
            check(head_of("working_set"), X)
        assert [item["row"] for item in caught.value.errors] == list(range(20))

    def test_a_frozen_gamma_decides(self):
        """The polynomial kernel's limit follows the scale of the first samples."""
        head = head_of("working_set", {"kernel": {"type": "polynomial"}})
        samples = stream(128, ["a", "b"])
        large = np.full((1, 3), 5e5)
        check(head, large)
        head.absorb(1e-30 * samples.X, samples.y)
        with pytest.raises(InvalidSamples):
            check(head, large)
        check(head, 1e-20 * samples.X)

    def test_checking_learns_nothing(self):
        head = head_of("working_set")
        check(head, rows(10))
        assert head.view().stats["size"] == 0


class TestSparseRows:
    """Rows of numbered features are learned as the same rows with all their zeros."""

    @pytest.mark.parametrize("spec", [FIXED, AUTO], ids=["fixed", "auto"])
    def test_the_set_answers_as_for_full_rows(self, spec: dict[str, Any]):
        samples = stream(300, ["a", "b", "c"])
        X = np.where(np.abs(samples.X) < 0.7, 0.0, samples.X)
        full, few = head_of("working_set", spec), head_of("working_set", spec)
        expected, told = full.absorb(X, samples.y), few.absorb(sparse(X), samples.y)
        assert told.prediction == expected.prediction
        assert told.admitted == expected.admitted
        assert told.step == expected.step
        decision, told_decision = (
            full.view().predict(X).decision,
            few.view().predict(sparse(X)).decision,
        )
        np.testing.assert_allclose(told_decision, decision, rtol=1e-4, atol=1e-5)

    def test_random_features_are_others_of_the_same_kernel(self):
        """Arrays are shifted by their first row before they are projected, sparse rows are not."""
        samples = stream(2000, ["a", "b"], seed=3)
        spec = FIXED | {"asset": {"dimension": 512}}
        full, few = head_of("asset", spec), head_of("asset", spec)
        full.absorb(samples.X, samples.y)
        few.absorb(sparse(samples.X), samples.y)
        said, told = (
            full.view().predict(samples.X).prediction,
            few.view().predict(sparse(samples.X)).prediction,
        )
        assert np.mean(np.array(said) == np.array(told)) > 0.95

    def test_features_that_asset_has_not_met_are_left_out(self):
        head = head_of("asset")
        head.absorb(sparse(rows(100)), ["a", "b"] * 50)
        view = head.view()
        wider = np.hstack([rows(20, seed=1), 5 * np.ones((20, 2))])
        assert head.state()[0]["features"] == 3
        assert view.predict(sparse(wider)) == view.predict(sparse(wider[:, :3]))

    def test_features_that_no_landmark_has_are_part_of_the_distance(self):
        head = head_of("asset", {"kernel": {"gamma": 0.5}, "asset": NYSTROM})
        head.absorb(sparse(rows(100)), ["a", "b"] * 50)
        wider = np.hstack([rows(20, seed=1), np.full((20, 1), 100.0)])
        decision = head.view().predict(sparse(wider)).decision
        assert decision == pytest.approx([head.view().learner.model.b[1]] * 20)

    def test_features_that_identity_has_not_met_have_no_weight(self):
        head = head_of("asset", {"kernel": {"type": "linear"}})
        head.absorb(sparse(rows(100)), ["a", "b"] * 50)
        view = head.view()
        wider = np.hstack([rows(20, seed=1), 5 * np.ones((20, 2))])
        decision = view.predict(sparse(wider)).decision
        assert decision == pytest.approx(view.predict(sparse(wider[:, :3])).decision, rel=1e-12)

    def test_unknown_features_count_in_distances(self):
        head = head_of("working_set")
        head.absorb(sparse(rows(100)), ["a", "b"] * 50)
        wider = np.hstack([rows(20, seed=1), np.full((20, 1), 100.0)])
        decision = head.view().predict(sparse(wider)).decision
        assert decision == pytest.approx([head.view().learner.model.bias[0]] * 20)

    @each_head
    def test_the_features_that_were_met_are_part_of_the_state(self, name: HeadName):
        head, again = head_of(name), head_of(name)
        head.absorb(sparse(rows(100)), ["a", "b"] * 50)
        again.restore(*head.state())
        wider = sparse(np.hstack([rows(20, seed=1), np.ones((20, 2))]))
        assert again.state()[0]["features"] == 3
        assert again.view().predict(wider) == head.view().predict(wider)

    @each_head
    def test_rows_too_large_for_the_kernel_are_named(self, name: HeadName):
        X = np.ones((50, 2))
        X[[3, 7]] = 1e60
        X[9] = 1e200
        head = head_of(name)
        with pytest.raises(InvalidSamples) as caught:
            check(head, X)
        assert [item["row"] for item in caught.value.errors] == [3, 7, 9]
        head.absorb(sparse(rows(4)), ["a", "b"] * 2)
        with pytest.raises(InvalidSamples):
            head.view().predict(sparse(X))


class TestState:
    @each_head
    def test_classes_and_scores_are_part_of_it(self, name: HeadName):
        head, again = head_of(name), head_of(name)
        labels: list[Label] = [True, 2, "3"]
        head.absorb(*stream(RECENT + 500, labels)[:2])
        again.restore(*head.state())
        assert typed(again.view().classes) == typed(labels)
        assert again.view().stats["prequential"] == head.view().stats["prequential"]
        for one in (head, again):
            one.absorb(*stream(300, labels, seed=1)[:2])
        assert again.view().stats["prequential"] == head.view().stats["prequential"]

    @each_head
    def test_a_state_is_a_copy(self, name: HeadName):
        head, again = head_of(name, AUTO), head_of(name, AUTO)
        head.absorb(*stream(100, ["a", "b"])[:2])
        said = head.view().predict(rows(20))
        plain, arrays = head.state()
        head.absorb(*stream(200, ["c", "a"], seed=1)[:2])
        again.restore(plain, arrays)
        assert again.view().predict(rows(20)) == said
