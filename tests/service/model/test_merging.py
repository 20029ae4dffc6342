"""One model of several that have learned parts of one stream."""

from typing import Any

import numpy as np
import pytest

from tests.service.specs import PAPERS
from wolfstream.service.engine.model_files import fill_model
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.merging import NotMergeable, merged
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.model import ModelSpec, read_spec
from wolfstream.service.storage.snapshot_format import State, decode_state, encode_state
from wolfstream.solver.rows.seen import Seen

FAST: dict[str, Any] = {"learners": 2, **PAPERS}
OF_ASSET: dict[str, Any] = {
    "learners": 2,
    **PAPERS,
    "kernel": {"gamma": 0.5},
    "working_set": None,
    "asset": {"dimension": 32},
}

OF_BOTH: dict[str, Any] = {**FAST, "kernel": {"gamma": 0.5}, "asset": {"dimension": 32}}
SPECS: dict[str, dict[str, Any]] = {
    "default": {"learners": 2},
    "set": FAST,
    "set with a width": {**FAST, "kernel": {"gamma": 0.5}},
    "asset": OF_ASSET,
    "both": OF_BOTH,
    "balanced": {"learners": 2, "adaptive": {"class_weight": "balanced"}},
}


def samples(n: int, seed: int, labels: tuple[str, str] = ("a", "b")) -> Samples:
    """Points of two classes, which differ in the sign of their first number."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return Samples(X, [labels[int(row[0] > 0)] for row in X], None)


def parts_of(given: dict[str, Any], head: HeadName, *taught: Samples) -> list[Learner]:
    """Return a learner for each part of a stream."""
    parts = []
    for number, part in enumerate(taught):
        learner = Learner(Model(0, f"m:{number}", read_spec(given).single_learner))
        for start in range(0, len(part.y), 32):
            rows = slice(start, start + 32)
            learner.absorb(head, Samples(part.X[rows], part.y[rows], None))  # type: ignore[index]
        parts.append(learner)
    return parts


def answers(learner: Learner, X: Any, head: HeadName | None = None) -> list[Any]:
    """What a head predicts, by default the one that the spec serves."""
    learner.publish()
    return learner.model.published.predict(head or learner.model.spec.serve, Seen(X)).prediction


def restored_of(spec: ModelSpec, learner: Learner) -> Learner:
    """Return a learner that goes on from the bytes of another one's state."""
    content = b"".join(encode_state(State(*learner.state())))
    return fill_model(Model(0, "m", spec), decode_state(content, "it"), "it").learner


class TestMerged:
    @pytest.mark.parametrize(
        ("given", "head"),
        [
            ({"learners": 2}, "working_set"),
            (FAST, "working_set"),
            (OF_ASSET, "asset"),
        ],
        ids=["default", "set", "asset"],
    )
    def test_predicts_what_the_parts_have_learned(self, given: dict[str, Any], head: HeadName):
        parts = parts_of(given, head, samples(200, 1), samples(200, 2))
        model = merged("m", read_spec(given), parts)
        test = samples(200, 3)
        right = np.mean([a == b for a, b in zip(answers(model, test.X), test.y, strict=True)])
        assert model.sequence == 400
        assert right > 0.9

    def test_comes_back_from_its_state_bit_for_bit(self):
        parts = parts_of({"learners": 2}, "working_set", samples(200, 1), samples(130, 2))
        spec = read_spec({"learners": 2})
        model = merged("m", spec, parts)
        first, second = (restored_of(spec, model) for _ in range(2))
        X = samples(50, 3).X
        assert first.model.describe() == second.model.describe()
        found = [
            one.model.published.predict("adaptive", Seen(X)).decision for one in (first, second)
        ]
        assert found[0] == found[1]

    def test_counts_the_scores_of_all_parts(self):
        parts = parts_of(FAST, "working_set", samples(1200, 1), samples(300, 2))
        found = merged("m", read_spec(FAST), parts)
        found.publish()
        for one in parts:
            one.publish()
        scores = [one.model.describe()["heads"]["working_set"]["prequential"] for one in parts]
        total = found.model.describe()["heads"]["working_set"]["prequential"]
        assert total["samples"] == sum(one["samples"] for one in scores)
        right = sum(one["samples"] * one["accuracy"] for one in scores)
        assert total["accuracy"] == pytest.approx(right / total["samples"])
        assert total["recent_accuracy"] > 0.8

    def test_knows_the_classes_of_all_parts_in_any_order(self):
        taught = samples(100, 1, ("a", "b")), samples(100, 2, ("c", "a"))
        found = merged("m", read_spec(FAST), parts_of(FAST, "working_set", *taught))
        assert set(found.heads["working_set"].classes or ()) == {"a", "b", "c"}

    @pytest.mark.parametrize("given", SPECS.values(), ids=SPECS)
    @pytest.mark.parametrize("labels", [("a", "a"), ("a", "b")], ids=["same", "other"])
    @pytest.mark.parametrize("sizes", [(1, 1), (3, 40)])
    def test_of_one_class_each_goes_on(
        self, given: dict[str, Any], labels: tuple[str, str], sizes: tuple[int, int]
    ):
        taught = [samples(n, n, (label, label)) for n, label in zip(sizes, labels, strict=True)]
        spec = read_spec(given)
        for head in spec.heads:
            restored = restored_of(spec, merged("m", spec, parts_of(given, head, *taught)))
            assert restored.sequence == sum(sizes)
            assert list(restored.heads[head].classes or ()) == sorted(set(labels))
            later = samples(200, 5, ("a", "c"))
            restored.absorb(head, later)
            right = np.mean(np.array(answers(restored, later.X, head)) == np.array(later.y))
            assert right > 0.8

    def test_leaves_heads_that_have_learned_nothing_as_they_are(self):
        """A call teaches the set or ASSET; the other one has met no class, and no row."""
        parts = parts_of(OF_BOTH, "asset", samples(200, 1), samples(200, 2))
        spec = read_spec(OF_BOTH)
        model = restored_of(spec, merged("m", spec, parts))
        assert list(model.heads["working_set"].classes or ()) == []
        for head in spec.heads:
            model.absorb(head, samples(200, 3))
        test = samples(200, 4)
        for head in spec.heads:
            right = np.mean(np.array(answers(model, test.X, head)) == np.array(test.y))
            assert right > 0.9

    def test_leaves_out_parts_without_samples(self):
        parts = parts_of(FAST, "working_set", samples(50, 1), samples(0, 2))
        assert merged("m", read_spec(FAST), parts).sequence == 50

    def test_is_refused_where_no_part_has_samples(self):
        parts = parts_of(FAST, "working_set", samples(0, 1))
        with pytest.raises(NotMergeable, match="has learned a sample"):
            merged("m", read_spec(FAST), parts)

    def test_is_refused_where_rows_have_another_length(self):
        narrow = samples(50, 2)._replace(X=np.ones((50, 2)))
        parts = parts_of(FAST, "working_set", samples(50, 1), narrow)
        with pytest.raises(NotMergeable, match="arrays of 2 and 3 numbers"):
            merged("m", read_spec(FAST), parts)
