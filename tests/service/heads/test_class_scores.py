"""Scores of imbalanced classes beside scikit-learn's, through restarts and replay."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    confusion_matrix,
    precision_recall_fscore_support,
    roc_auc_score,
)

from wolfstream.service.errors import Invalid
from wolfstream.service.heads.class_scores import class_scores
from wolfstream.service.model.label_warnings import label_warnings
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.model_files import ModelFileError, fill_model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec
from wolfstream.service.storage.snapshot_format import State
from wolfstream.solver.calibration.ranking import no_ranking, overall_scores, with_rows
from wolfstream.solver.labels import text_of

QUICK: dict[str, Any] = {"working_set": None, "asset": None}


def frauds(n: int, share: float = 0.03, seed: int = 0) -> Samples:
    """Points of which a few are frauds, whose first number is mostly larger."""
    random = np.random.default_rng(seed)
    fraud = random.random(n) < share
    X = random.standard_normal((n, 3))
    X[:, 0] += 2.5 * fraud
    return Samples(X, ["fraud" if one else "ok" for one in fraud])


def learned(samples: Samples, size: int = 50, spec: dict[str, Any] = QUICK) -> Learner:
    learner = Learner(Model(0, "m", read_spec(spec)))
    for start in range(0, len(samples.y), size):
        learner.absorb("adaptive", samples.part(start, start + size))
    learner.publish()
    return learner


def scores_of(learner: Learner) -> Any:
    return learner.model.describe()["heads"]["adaptive"]["scores"]


def test_they_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    p = random.dirichlet([1.0, 0.3, 3.0], 2000)
    codes = np.array([random.choice(3, p=row) for row in p])
    predicted = p.argmax(axis=1)
    confusion = confusion_matrix(codes, predicted)
    ranks = overall_scores(with_rows(no_ranking(), p, codes, 1000))
    found = class_scores(["a", "b", "c"], confusion, 0.5, ranks)
    assert found["samples"] == 2000
    assert found["accuracy"] == (codes == predicted).mean()
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(codes, predicted))
    auc = roc_auc_score(codes, p, multi_class="ovr")
    assert found["roc_auc"] == pytest.approx(auc, abs=0.003)
    assert found["average_precision"] == pytest.approx(
        average_precision_score(np.eye(3)[codes], p), abs=0.006
    )
    expected = precision_recall_fscore_support(codes, predicted)
    for name, values in zip(("precision", "recall", "f1", "support"), expected, strict=True):
        of_classes = [found["classes"][label][name] for label in "abc"]
        assert of_classes == pytest.approx(values.tolist())
    assert found["confusion"] == {"labels": ["a", "b", "c"], "counts": confusion.tolist()}


def test_average_precision_of_two_classes_is_that_of_the_rarer_one():
    learner = learned(frauds(1500))
    for over in scores_of(learner).values():
        assert over["average_precision"] == over["classes"]["fraud"]["average_precision"]
        assert over["average_precision"] < over["classes"]["ok"]["average_precision"]


def test_a_class_that_nobody_predicted_has_no_precision():
    found = class_scores([True, False, 7], np.array([[0, 2, 0], [0, 2, 0], [0, 0, 0]]), None)
    assert found["classes"]["true"]["precision"] is None
    assert found["classes"]["true"]["recall"] == found["classes"]["true"]["f1"] == 0.0
    assert found["classes"]["7"]["f1"] is found["roc_auc"] is found["average_precision"] is None
    assert (found["accuracy"], found["balanced_accuracy"]) == (0.5, 0.5)
    assert class_scores([], np.zeros((0, 0), int), None)["balanced_accuracy"] is None


def test_recent_and_overall_are_of_the_samples_that_they_say():
    learner = learned(frauds(1300))
    recent, overall = (scores_of(learner)[over] for over in ("recent", "overall"))
    assert (recent["samples"], overall["samples"]) == (1000, 1299)
    assert sum(of["support"] for of in recent["classes"].values()) == 1000
    prequential = learner.model.describe()["heads"]["adaptive"]["prequential"]
    assert recent["accuracy"] == prequential["recent_accuracy"]
    assert overall["majority"] == prequential["majority_accuracy"]
    assert overall["balanced_accuracy"] > 0.6
    assert overall["roc_auc"] > 0.9


def test_requests_of_any_size_give_the_same():
    samples = frauds(700)
    one, other = (scores_of(learned(samples, size))["overall"] for size in (1, 350))
    assert one["confusion"] == other["confusion"]
    # The bank's probabilities are the same to rounding, which may be at the edge of a bin.
    for name in ("roc_auc", "average_precision"):
        assert one[name] == pytest.approx(other[name], abs=2e-3)


def test_a_restored_model_goes_on_with_the_same():
    samples = frauds(1500)
    whole = learned(samples)
    half = learned(samples.part(0, 750))
    plain, arrays = half.state()
    plain = json.loads(json.dumps(plain))
    restored = fill_model(Model(0, "m", half.model.spec), State(plain, arrays), "it").learner
    for start in range(750, 1500, 50):
        restored.absorb("adaptive", samples.part(start, start + 50))
    restored.publish()
    assert scores_of(restored) == scores_of(whole)


def test_only_the_served_head_of_classes_has_them():
    learner = learned(frauds(200), spec={"working_set": None})
    heads = learner.model.describe()["heads"]
    assert [name for name, stats in heads.items() if "scores" in stats] == ["adaptive"]
    numbers = Learner(Model(0, "m", read_spec({"task": "regression", "asset": None})))
    numbers.absorb("adaptive", Samples(np.ones((3, 1)), np.arange(3.0)))
    numbers.publish()
    assert "scores" not in numbers.model.describe()["heads"]["adaptive"]


def test_a_hundred_classes_take_bounded_memory():
    n = 3000
    samples = Samples(np.random.default_rng(0).random((n, 1)), [i % 100 for i in range(n)])
    spec = {**QUICK, "adaptive": {"horizons": [300], "steps": [], "neighbours": []}}
    _, arrays = learned(samples, 500, spec).state()
    own = [array for name, array in arrays.items() if ".calibration_ranking" in name]
    assert sum(array.nbytes for array in own) < 600_000


@pytest.mark.parametrize(
    ("label", "text"), [("fraud", "fraud"), (1, "1"), (True, "true"), (False, "false")]
)
def test_labels_are_named_as_in_json(label: Any, text: str):
    assert text_of(label) == text


class TestLabelWarnings:
    def slugs(self, labels: list[Any]) -> list[str]:
        learner = learned(Samples(np.zeros((len(labels), 1)), labels), 500)
        return [one["slug"] for one in learner.model.warnings()]

    def test_of_an_imbalance_name_the_share_and_the_label(self):
        learner = learned(Samples(np.zeros((1000, 1)), ["fraud"] * 11 + ["ok"] * 989), 500)
        (warning,) = learner.model.describe()["warnings"]
        assert warning == {
            "slug": "imbalanced-labels",
            "column": None,
            "message": "98.9% of labels are `ok`: look at precision and recall",
        }

    def test_never_say_that_all_labels_are_one(self):
        learner = learned(Samples(np.zeros((5000, 1)), ["fraud"] + ["ok"] * 4999), 500)
        assert learner.model.warnings()[0]["message"].startswith("99.9% of labels are `ok`")

    def test_of_many_numbers_ask_for_a_regression(self):
        assert self.slugs([100 * k for k in range(40)]) == ["numeric-labels"]
        assert self.slugs([f"{k}.5" for k in range(40)]) == ["numeric-labels"]
        assert self.slugs([f"${k},500" for k in range(40)]) == ["numeric-labels"]

    def test_of_labels_that_differ_in_case_or_spaces_name_both(self):
        labels = [*["No", "Yes"] * 20, "yes", "Yes "]
        learner = learned(Samples(np.zeros((len(labels), 1)), labels), 500)
        (warning,) = learner.model.warnings()
        assert warning == {
            "slug": "similar-labels",
            "column": None,
            "message": "`Yes`, `yes` and `Yes ` are 3 classes: did you mean one?",
        }

    def test_of_a_label_that_may_be_a_missing_one_name_it(self):
        (warning,) = learned(Samples(np.zeros((9, 1)), ["a", "b", "NA"] * 3), 9).model.warnings()
        assert warning == {
            "slug": "missing-labels",
            "column": None,
            "message": "`NA` is a class: if it means that a label is missing, leave such rows out",
        }

    @pytest.mark.parametrize(
        "labels",
        [
            ["a", "b"] * 60,
            ["ok"] * 98 + ["fraud"],  # too few to say
            ["ok"] * 200,  # one class
            [k % 10 for k in range(200)],  # digits
            [chr(97 + k % 26) for k in range(200)],
        ],
    )
    def test_are_not_of_what_is_common(self, labels: list[Any]):
        assert self.slugs(labels) == []

    def test_of_no_head_are_none(self):
        assert label_warnings(None) == []


class TestClassWeights:
    @pytest.mark.parametrize("class_weight", ["balanced", {"fraud": 40.0}])
    def test_find_more_frauds_and_go_on_from_a_snapshot(self, class_weight: Any):
        samples = frauds(1500)
        spec = {**QUICK, "adaptive": {"class_weight": class_weight}}
        whole = learned(samples, spec=spec)
        recalls = [
            scores_of(one)["overall"]["classes"]["fraud"]["recall"]
            for one in (learned(samples), whole)
        ]
        assert recalls[1] > recalls[0] + 0.2
        losses = [
            one.model.describe()["heads"]["adaptive"]["calibration"]["log_loss"]
            for one in (learned(samples), whole)
        ]
        assert losses[1] == losses[0]
        plain, arrays = learned(samples.part(0, 750), spec=spec).state()
        plain = json.loads(json.dumps(plain))
        restored = fill_model(Model(0, "m", whole.model.spec), State(plain, arrays), "it").learner
        for start in range(750, 1500, 50):
            restored.absorb("adaptive", samples.part(start, start + 50))
        restored.publish()
        assert restored.model.describe()["heads"] == whole.model.describe()["heads"]

    @pytest.mark.parametrize("counts", [None, [1], [-1, 3], [0.5, 1], [2**60, 1]])
    def test_refuse_counts_that_cannot_be(self, counts: Any):
        spec = {**QUICK, "adaptive": {"class_weight": "balanced"}}
        plain, arrays = learned(frauds(300), spec=spec).state()
        bank = {**plain["heads"]["adaptive"], "class_counts": counts}
        plain = {**plain, "heads": {**plain["heads"], "adaptive": bank}}
        with pytest.raises(ModelFileError, match="bank"):
            fill_model(Model(0, "m", read_spec(spec)), State(plain, arrays), "it")

    @pytest.mark.parametrize("given", ["even", {"a": 0}, {"a": -1}, {"a": 1e9}, {}, [1], 3])
    def test_are_positive_numbers_or_balanced(self, given: Any):
        with pytest.raises(Invalid):
            read_spec({"adaptive": {"class_weight": given}})

    def test_are_of_classes(self):
        with pytest.raises(Invalid) as refused:
            read_spec({"task": "regression", "adaptive": {"class_weight": "balanced"}})
        assert "no classes" in str(refused.value.errors)
