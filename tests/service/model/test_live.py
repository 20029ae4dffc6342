"""A model: what it would refuse, what its readers see, and how it comes back from its state."""

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.decoding import BOUNDS
from tests.service.specs import read_papers_spec
from tests.service.streams import few_words, named, part, saved, three_classes, two_classes
from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.errors import InvalidSamples, NoSuchHead, Refusal
from wolfstream.service.model.draft import Draft, Limits
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.labels import Label
from wolfstream.service.samples.record import from_record, to_record
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.snapshot_format import State
from wolfstream.service.web.formats.wire import JSON, MSGPACK
from wolfstream.solver.labels import key_of
from wolfstream.solver.prepare.named_rows import named_rows
from wolfstream.solver.prepare.row_form import RowForm

HEADS: tuple[HeadName, ...] = ("working_set", "asset")
LIMITS = Limits(classes=100, features=1000)
SMALL: dict[str, Any] = {"asset": {"dimension": 16}}


def classes(most: int) -> Limits:
    return LIMITS._replace(classes=most)


def model_of(spec: dict[str, Any] | None = None) -> Learner:
    return Learner(Model(1, "m", read_papers_spec(SMALL if spec is None else spec)))


def of(labels: list[Label], features: int = 2) -> Samples:
    random = np.random.default_rng(len(labels))
    return Samples(random.standard_normal((len(labels), features)), labels)


def taken(draft: Draft) -> tuple[Any, ...]:
    """What a draft has reserved."""
    labels = {name: set(new) for name, new in draft._labels.items()}
    return draft.sequence, draft._form, set(draft._names), labels


def learn(learner: Learner, requests: Iterable[tuple[HeadName, Samples]]) -> list[Any]:
    """Absorb requests as the writer would, one block each; their answers."""
    answers = []
    for head, samples in requests:
        Draft(learner, LIMITS).add(head, samples)
        answers.append(learner.absorb(head, samples))
        learner.publish()
    return answers


class TestCheck:
    @pytest.mark.parametrize("null", HEADS)
    def test_a_null_head_cannot_learn(self, null: HeadName):
        learner = model_of({null: None})
        with pytest.raises(NoSuchHead, match=f"null for {null}"):
            Draft(learner, LIMITS).add(null, of(["a"]))

    def test_the_first_samples_decide_the_dimension(self):
        learner = model_of()
        learn(learner, [("asset", of(["a"], 5))])
        for head in HEADS:
            Draft(learner, LIMITS).add(head, of(["a"], 5))
            with pytest.raises(InvalidSamples) as caught:
                Draft(learner, LIMITS).add(head, of(["a"], 4))
            assert caught.value.errors == [
                {
                    "row": 0,
                    "pointer": "/x/0",
                    "detail": "has 4 numbers, the model's rows have 5",
                }
            ]

    def test_the_dimension_is_reserved_within_a_group(self):
        learner = model_of()
        draft = Draft(learner, LIMITS)
        draft.add("working_set", of(["a"], 3))
        for head in HEADS:
            with pytest.raises(InvalidSamples, match="rows have 3"):
                draft.add(head, of(["a"], 2))
            draft.add(head, of(["a"], 3))
        assert draft.sequence == 3

    def test_another_group_is_not_bound_by_a_draft(self):
        learner = model_of()
        Draft(learner, LIMITS).add("asset", of(["a"], 3))
        Draft(learner, LIMITS).add("asset", of(["a"], 2))

    @pytest.mark.parametrize("head", HEADS)
    def test_labels_are_bounded(self, head: HeadName):
        learner = model_of()
        learn(learner, [(head, of(["a", "b"]))])
        Draft(learner, classes(3)).add(head, of(["a", "c"]))
        with pytest.raises(InvalidSamples, match="more than 3 different labels"):
            Draft(learner, classes(3)).add(head, of(["c", "a", "d"]))

    def test_the_first_request_is_bounded_too(self):
        with pytest.raises(InvalidSamples, match="more than 3"):
            Draft(model_of(), classes(3)).add("asset", of([1, 2, 3, 4]))

    def test_labels_are_reserved_within_a_group(self):
        learner = model_of()
        learn(learner, [("working_set", of(["a"]))])
        draft = Draft(learner, classes(3))
        draft.add("working_set", of(["b", "a"]))
        draft.add("working_set", of(["b", "c"]))
        with pytest.raises(InvalidSamples):
            draft.add("working_set", of(["d"]))
        draft.add("working_set", of(["a", "b", "c"]))

    def test_each_head_has_labels_of_its_own(self):
        learner = model_of()
        draft = Draft(learner, classes(2))
        draft.add("working_set", of(["a", "b"]))
        draft.add("asset", of(["c", "d"]))
        with pytest.raises(InvalidSamples):
            draft.add("asset", of(["a"]))

    def test_spellings_of_a_label_are_one_class(self):
        learner = model_of()
        draft = Draft(learner, classes(2))
        draft.add("asset", of([1, 1]))
        draft.add("asset", of([True, "1", "true", 2]))
        with pytest.raises(InvalidSamples):
            draft.add("asset", of(["01"]))

    def test_rows_too_large_for_the_kernel_are_refused(self):
        learner = model_of()
        with pytest.raises(InvalidSamples, match="too large for the kernel"):
            Draft(learner, classes(2)).add("working_set", Samples(np.full((1, 2), 1e60), ["a"]))

    @pytest.mark.parametrize(
        "wrong",
        [of(["d"], 3), of([1, 2, 3, 4]), Samples(np.full((1, 2), 1e60), ["a"])],
        ids=["dimension", "labels", "norm"],
    )
    def test_a_refused_request_reserves_nothing(self, wrong: Samples):
        learner = model_of()
        draft = Draft(learner, classes(3))
        draft.add("asset", of(["a", "b"]))
        before = taken(draft)
        with pytest.raises(InvalidSamples):
            draft.add("asset", wrong)
        assert taken(draft) == before

    def test_accepted_request_changes_the_draft_only(self):
        learner = model_of()
        learn(learner, [("asset", of(["a"]))])
        draft = Draft(learner, LIMITS)
        before = learner.model.describe()
        draft.add("asset", of(["a", "b", "b"]))
        assert draft._labels == {
            "working_set": set(),
            "asset": {"b"},
            "semiparametric": set(),
            "adaptive": set(),
            "custom": set(),
            "novelty": set(),
        }
        assert (draft.sequence, draft._form.features) == (4, 2)
        assert learner.model.describe() == before
        assert (learner.sequence, learner.rows.dimension) == (1, 2)

    def test_before_the_first_samples_any_dimension_will_do(self):
        RowForm(None).checked(np.ones((1, 7)))

    @settings(max_examples=50)
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(HEADS),
                st.integers(1, 2),
                st.lists(st.sampled_from(["a", "b", "c", 1, True]), min_size=1, max_size=4),
            ),
            max_size=8,
        )
    )
    def test_what_a_draft_accepted_can_be_learned(self, requests: list[Any]):
        """A group is checked as a whole, then learned; the draft foresaw what came of it."""
        learner = model_of({"asset": {"dimension": 2}})
        draft = Draft(learner, classes(3))
        accepted = []
        for head, features, labels in requests:
            samples = of(labels, features)
            try:
                draft.add(head, samples)
            except Refusal:
                continue
            accepted.append((head, samples))
        for head, samples in accepted:
            learner.absorb(head, samples)
        assert learner.sequence == draft.sequence
        assert learner.rows.form == draft._form
        for name, head in learner.heads.items():
            assert set(map(key_of, head.classes)) == draft._labels[name]
            assert len(head.classes) <= 3


def words(*rows: str, label: Label = "a") -> Samples:
    """One sample for each string, whose letters are names."""
    return Samples(
        named_rows([dict.fromkeys(row, 1.0) for row in rows]), [label for _ in range(len(rows))]
    )


def names_in(draft: Draft, learner: Learner) -> int:
    return len(draft._names) + len(learner.rows.names or ())


def names_of(learner: Learner) -> list[str]:
    assert learner.rows.names is not None
    return learner.rows.names.names()


class TestNames:
    def test_are_numbered_as_they_appear_in_the_log_whatever_the_head(self):
        learner = model_of()
        learn(learner, [("asset", words("ba", "c")), ("working_set", words("dc", "ea"))])
        assert names_of(learner) == ["b", "a", "c", "d", "e"]
        assert learner.model.published.rows.dimension == learner.rows.dimension == 5
        assert (learner.model.describe()["rows"], learner.model.describe()["features"]) == (
            "named",
            5,
        )

    def test_do_not_depend_on_how_the_stream_was_cut(self):
        samples = few_words(200)
        models = [model_of() for _ in range(3)]
        for learner, size in zip(models, [1, 7, 200], strict=True):
            parts = [part(samples, i, min(i + size, 200)) for i in range(0, 200, size)]
            learn(learner, [("asset", samples) for samples in parts])
        assert names_of(models[0]) == names_of(models[1]) == names_of(models[2])

    @pytest.mark.parametrize("head", HEADS)
    @pytest.mark.parametrize("first_named", [False, True])
    def test_the_first_sample_decides_the_kind_of_rows(self, head: HeadName, first_named: bool):
        learner = model_of()
        kinds = [of(["a"]), words("ab")]
        first, other = kinds[first_named], kinds[not first_named]
        takes = ["arrays of numbers", "objects of named numbers"][first_named]
        draft = Draft(learner, LIMITS)
        draft.add("asset", first)
        with pytest.raises(InvalidSamples, match=f"rows are {takes}"):
            draft.add(head, other)
        draft.add(head, first)
        learn(learner, [("asset", first)])
        with pytest.raises(InvalidSamples) as caught:
            Draft(learner, LIMITS).add(head, other)
        assert caught.value.errors == [{"pointer": "/x", "detail": f"must be {takes}"}]
        with pytest.raises(InvalidSamples):
            learner.model.published.head_rows(other.X)

    def test_a_zero_row_decides_it_too(self):
        learner = model_of()
        learn(learner, [("asset", words(""))])
        assert (learner.model.describe()["rows"], learner.model.describe()["features"]) == (
            "named",
            0,
        )
        with pytest.raises(InvalidSamples):
            Draft(learner, LIMITS).add("asset", of(["a"]))
        learn(learner, [("asset", words("a", label="b")), ("working_set", words("", "b"))])
        assert names_of(learner) == ["a", "b"]

    def test_are_bounded(self):
        learner = model_of()
        learn(learner, [("asset", words("abc"))])
        Draft(learner, Limits(100, 5)).add("asset", words("cd", "dea"))
        with pytest.raises(InvalidSamples, match="more than 5 different names") as caught:
            Draft(learner, Limits(100, 5)).add("asset", words("ad", "efg"))
        (error,) = caught.value.errors
        assert error["pointer"] == "/x"
        assert "4 new names, 'd' first, to the 3" in error["detail"]
        assert "WOLFSTREAM_FEATURES" in error["detail"]

    def test_known_names_are_welcome_beyond_a_bound_that_was_lowered(self):
        learner = model_of()
        learn(learner, [("asset", words("abc"))])
        Draft(learner, Limits(100, 2)).add("asset", words("ab", "c"))
        with pytest.raises(InvalidSamples):
            Draft(learner, Limits(100, 2)).add("asset", words("d"))

    def test_their_features_are_bounded_in_bytes(self):
        """Three names are 3 * 3 * 8 bytes for each of the dimension's frequencies."""
        learner = model_of()
        own = learner.model.spec.asset
        assert own is not None
        assert own.dimension is not None
        limits = Limits(100, 100, 3 * 3 * 8 * own.dimension)
        draft = Draft(learner, limits)
        draft.add("asset", words("abc"))
        with pytest.raises(InvalidSamples, match="too much memory") as caught:
            draft.add("asset", words("abcd"))
        assert "WOLFSTREAM_MODEL_BYTES" in caught.value.errors[0]["detail"]
        draft.add("asset", words("cba"))
        assert names_in(draft, learner) == 3

    def test_are_reserved_within_a_group_for_both_heads(self):
        learner = model_of()
        learn(learner, [("asset", words("a"))])
        draft = Draft(learner, Limits(100, 3))
        draft.add("asset", words("ab"))
        draft.add("working_set", words("bc"))
        with pytest.raises(InvalidSamples):
            draft.add("asset", words("d"))
        draft.add("asset", words("cba"))
        assert names_in(draft, learner) == 3

    @pytest.mark.parametrize(
        "wrong",
        [
            Samples(named_rows([{"new": 1e60}]), ["a"]),
            Samples(named_rows([{"new": k} for k in range(1, 5)]), [1, 2, 3, 4]),
            words("bcdefgh"),
            of(["a"]),
        ],
        ids=["norm", "labels", "names", "kind"],
    )
    def test_a_refused_request_leaves_no_name_behind(self, wrong: Samples):
        learner = model_of()
        draft = Draft(learner, Limits(3, 7))
        draft.add("asset", words("abc"))
        before = taken(draft)
        with pytest.raises(InvalidSamples):
            draft.add("asset", wrong)
        assert taken(draft) == before
        assert learner.rows.names is None

    def test_readers_know_the_names_of_their_view(self):
        learner = model_of()
        learn(learner, [("asset", words("ab"))])
        published = learner.model.published
        rows = words("ca").X
        before = published.head_rows(rows).X
        learner.absorb("asset", words("dc"))
        for one, other in zip(published.head_rows(rows).X, before, strict=True):
            np.testing.assert_array_equal(one, other)

    def test_a_late_name_is_a_feature_that_was_zero_before(self):
        """The model is the one that would have had the feature from the first sample on."""
        early, late = [model_of({"kernel": {"gamma": 0.2}, "asset": None}) for _ in range(2)]
        samples = three_classes(300)
        X = np.hstack([samples.X, np.zeros((300, 1))])
        X[150:, 3] = np.random.default_rng(5).standard_normal(150)
        learn(early, [("working_set", Samples(X, samples.y))])
        without, then = Samples(samples.X[:150], samples.y[:150]), X[150:]
        learn(late, [("working_set", named(without))])
        assert late.rows.dimension == 3
        learn(late, [("working_set", named(Samples(then, samples.y[150:])))])
        assert late.rows.dimension == 4
        rows = named(Samples(X, samples.y)).X
        said = early.model.published.heads["working_set"].predict(X)
        seen = late.model.published.head_rows(rows)
        told = late.model.published.heads["working_set"].predict(seen.X)
        assert told.prediction == said.prediction
        np.testing.assert_allclose(told.decision, said.decision, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("kernel", ["rbf", "polynomial", "linear"])
    def test_an_unknown_name_is_one_that_no_sample_has(self, kernel: str):
        """The answer is that of the model which knows the name from elsewhere."""
        spec = {"kernel": {"type": kernel, "gamma": 0.2} if kernel == "rbf" else {"type": kernel}}
        with_it, without = model_of(spec), model_of(spec)
        samples = named(three_classes(300))
        learn(without, [("working_set", samples)])
        learn(with_it, [("working_set", samples)])
        rows = named_rows([{"x0": 1.0, "never met": 2.0}, {"neither": 1.0}])
        before = without.model.published.heads["working_set"].predict(
            without.model.published.head_rows(rows).X
        )
        assert with_it.rows.names is not None
        with_it.rows.names.add(["another", "neither", "never met"])
        matrix = with_it.rows.names.matrix(rows, 6)
        assert with_it.model.published.heads["working_set"].predict(matrix) == before

    def test_names_that_asset_has_not_met_change_nothing(self):
        learner = model_of({"asset": {"dimension": 64}})
        learn(learner, [("asset", named(three_classes(300)))])
        learn(learner, [("working_set", words("pq", label=10))])
        view = learner.model.published.heads["asset"]
        known = named_rows([{"x0": 1.0}, {"x2": -1.0}])
        unknown = named_rows([{"x0": 1.0, "q": 2.0}, {"x2": -1.0, "never met": 7.0}])
        head_rows = learner.model.published.head_rows
        assert view.predict(head_rows(unknown).X) == view.predict(head_rows(known).X)

    @settings(max_examples=50)
    @given(
        st.lists(
            st.tuples(st.sampled_from(HEADS), st.lists(st.text("abcdef", max_size=3), min_size=1)),
            max_size=8,
        )
    )
    def test_what_a_draft_accepted_can_be_learned(self, requests: list[Any]):
        learner = model_of({"asset": {"dimension": 2}})
        draft = Draft(learner, Limits(2, 3))
        accepted = []
        for head, rows in requests:
            try:
                draft.add(head, words(*rows))
            except Refusal:
                continue
            accepted.append((head, words(*rows)))
        for head, samples in accepted:
            learner.absorb(head, samples)
        assert (learner.sequence, learner.rows.form) == (draft.sequence, draft._form)
        assert len(learner.rows.names or ()) == names_in(draft, model_of())
        if learner.rows.names is not None:
            assert set(names_of(learner)) == set(draft._names)
            assert len(draft._names) <= 3


class TestPublish:
    def test_readers_see_a_block_once_it_is_published(self):
        learner = model_of()
        learner.absorb("asset", of(["a", "b"]))
        assert learner.model.published.sequence == 0
        assert learner.model.published.heads["asset"].classes == ()
        learner.publish()
        assert learner.model.published.sequence == 2
        assert learner.model.published.rows.dimension == 2
        assert learner.model.published.heads["asset"].classes == ("a", "b")

    def test_the_sequence_counts_both_heads(self):
        learner = model_of()
        learn(learner, [("asset", of(["a"] * 3)), ("working_set", of(["a"] * 4))])
        assert learner.model.published.sequence == learner.sequence == 7

    @pytest.mark.parametrize("changed", HEADS)
    def test_a_head_that_did_not_learn_keeps_its_view(self, changed: HeadName):
        learner = model_of()
        before = learner.model.published.heads
        learn(learner, [(changed, of(["a", "b"]))])
        for name in HEADS:
            assert (learner.model.published.heads[name] is before[name]) == (name != changed)

    @pytest.mark.parametrize("make", [three_classes, few_words])
    def test_what_was_published_does_not_change(self, make: Any):
        learner = model_of({"working_set": {"max_size": 40}, "asset": {"dimension": 16}})
        samples = make(600)
        rows = part(samples, 0, 50).X
        seen = []
        for start in range(0, 600, 60):
            both = part(samples, start, start + 60)
            learn(learner, [("working_set", both), ("asset", both)])
            views = [learner.model.published.heads[name] for name in HEADS]
            X = learner.model.published.head_rows(rows).X
            seen.append((learner.model.published, [view.predict(X) for view in views]))
        for published, said in seen:
            X = published.head_rows(rows).X
            assert [published.heads[name].predict(X) for name in HEADS] == said
        assert [published.sequence for published, _ in seen] == list(range(120, 1201, 120))

    def test_a_description_before_the_first_sample(self):
        spec = {"kernel": {"type": "linear"}, "asset": None, "seed": 3}
        learner = model_of(spec)
        description = learner.model.describe()
        assert description == {
            "model": "m",
            "spec": read_papers_spec(spec).plain(),
            "sequence": 0,
            "epoch": "",
            "notice": None,
            "rows": None,
            "features": None,
            "columns": None,
            "heads": {"working_set": description["heads"]["working_set"]},
            "pending": {"rows": 0, "bytes": 0, "joined": 0, "expired": 0, "since": None},
            "labels_before": None,
            "follows": None,
            "snapshot_sequence": 0,
            "rolled_back": None,
            "warning": None,
            "warnings": [],
            "status": "ok",
        }
        assert description["heads"]["working_set"]["classes"] == []

    @pytest.mark.parametrize("spoken", [JSON, MSGPACK], ids=["json", "msgpack"])
    def test_a_description_can_be_sent(self, spoken: Any):
        learner = model_of()
        assert (
            spoken.decode(spoken.encode(learner.model.describe()), BOUNDS)
            == learner.model.describe()
        )
        labels: list[Label] = [True, 2, "é"]
        learn(learner, [(head, of(labels * 20)) for head in HEADS])
        again = spoken.decode(spoken.encode(learner.model.describe()), BOUNDS)
        assert again == learner.model.describe()
        classes = again["heads"]["asset"]["classes"]
        assert [type(label) for label in classes] == [bool, int, str]

    def test_a_broken_model_says_so(self):
        learner = model_of()
        learner.model.broken = "learning failed"
        assert learner.model.describe()["status"] == "broken"


SPECS: dict[str, dict[str, Any]] = {
    "auto": SMALL,
    "rbf": {"kernel": {"gamma": 0.3}, "asset": {"dimension": 16}},
    "full set": {"kernel": {"gamma": 0.3}, "working_set": {"max_size": 20}, "asset": None},
    "sfw": {"working_set": {"algorithm": "sfw", "corrective_steps": 0}, "asset": None},
    "polynomial": {"kernel": {"type": "polynomial", "degree": 2}},
    "linear": {"kernel": {"type": "linear"}},
    "asset only": {"working_set": None, "asset": {"dimension": 16, "average_from": 50}},
}


def requests_for(
    learner: Learner, samples: Samples, sizes: list[int]
) -> list[tuple[HeadName, Samples]]:
    """The samples for all heads in turn, in requests of these sizes."""
    ends = np.cumsum(sizes).tolist()
    return [
        (name, part(samples, end - size, end))
        for end, size in zip(ends, sizes, strict=True)
        for name in learner.heads
    ]


def bits(learner: Learner) -> Any:
    """Everything that a model's future depends on."""
    plain, arrays = learner.state()
    return plain, {
        name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()
    }


def answers_of(learner: Learner, X: Any) -> Any:
    learner.publish()
    views = {name: learner.model.published.heads[name] for name in learner.heads}
    rows = learner.model.published.head_rows(X).X
    return {name: view.predict(rows) for name, view in views.items() if len(view.classes) > 1}


class TestState:
    @pytest.mark.sweep
    @pytest.mark.parametrize("learned", [0, 1, 2, 100, 130, 400])
    @pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
    @pytest.mark.parametrize("make", [three_classes, few_words])
    def test_a_restored_model_goes_on_bit_for_bit(
        self, spec: dict[str, Any], make: Any, learned: int, tmp_path: Path
    ):
        """Saved and loaded, it predicts, learns and saves the same from then on."""
        live, again = model_of(spec), model_of(spec)
        samples = make(900)
        size = 50 if learned % 50 == 0 else learned
        learn(live, requests_for(live, samples, [size] * (learned // size) if learned else []))
        snapshots = SnapshotFiles(tmp_path)
        snapshots.save(1, State(*saved(live)))
        again.restore(*snapshots.load(1, live.sequence))
        assert again.sequence == again.model.snapshot_sequence == live.sequence
        assert again.rows.dimension == live.rows.dimension
        assert bits(again) == bits(live)
        assert answers_of(again, samples.X) == answers_of(live, samples.X)
        rest = part(samples, learned, 900)
        sizes = [1, 3, 70, 300, 100]
        answers = [learn(learner, requests_for(learner, rest, sizes)) for learner in (live, again)]
        assert answers[0] == answers[1]
        assert bits(again) == bits(live)
        assert answers_of(again, samples.X) == answers_of(live, samples.X)

    def test_labels_come_back_with_their_types(self, tmp_path: Path):
        live, again = model_of(), model_of()
        labels: list[Label] = [True, 2, "0", 2**63 - 1, "é"]
        learn(live, [(head, of(labels)) for head in HEADS])
        SnapshotFiles(tmp_path).save(1, State(*live.state()))
        again.restore(*SnapshotFiles(tmp_path).load(1, live.sequence))
        for head in again.heads.values():
            assert [type(label) for label in head.classes] == [type(label) for label in labels]
            assert head.classes == labels

    def test_names_come_back_with_their_numbers(self, tmp_path: Path):
        live, again = model_of(), model_of()
        learn(live, [("asset", words("b\0é", "\U0001f600a", "b")), ("working_set", words("c"))])
        SnapshotFiles(tmp_path).save(1, State(*live.state()))
        again.restore(*SnapshotFiles(tmp_path).load(1, live.sequence))
        assert names_of(again) == names_of(live) == ["b", "\0", "é", "\U0001f600", "a", "c"]
        with pytest.raises(InvalidSamples):
            Draft(again, LIMITS).add("asset", of(["a"]))

    def test_a_state_of_arrays_has_no_names(self):
        live, again = model_of(), model_of()
        learn(live, [("asset", of(["a", "b"]))])
        plain, arrays = live.state()
        assert "names" not in plain
        again.restore(plain, arrays)
        assert bits(again) == bits(live)

    def test_the_spec_is_part_of_it(self):
        plain, _ = model_of().state()
        assert read_papers_spec(plain["spec"]) == read_papers_spec(SMALL)

    def test_it_is_a_copy(self):
        learner = model_of()
        learn(learner, [(head, two_classes(200)) for head in HEADS])
        state = State(*learner.state())
        before = {name: array.tobytes() for name, array in state.arrays.items()}
        learn(learner, [(head, two_classes(200, seed=1)) for head in HEADS])
        assert {name: array.tobytes() for name, array in state.arrays.items()} == before
        assert state.plain["sequence"] == 400


class TestReplay:
    @pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
    @pytest.mark.parametrize("make", [three_classes, few_words])
    def test_the_log_gives_the_same_model_bit_for_bit(self, spec: dict[str, Any], make: Any):
        live, replayed = model_of(spec), model_of(spec)
        requests = requests_for(live, make(500), [1, 99, 200, 7, 193])
        records = [(head, to_record(samples)) for head, samples in requests]
        answers = learn(live, requests)
        assert answers == [replayed.absorb(head, from_record(record)) for head, record in records]
        assert bits(replayed) == bits(live)

    @settings(max_examples=20)
    @given(
        make=st.sampled_from([three_classes, few_words]),
        seed=st.integers(0, 1000),
        sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6),
        data=st.data(),
    )
    def test_from_any_state_on(self, make: Any, seed: int, sizes: list[int], data: st.DataObject):
        live = model_of({"working_set": {"max_size": 25}, "asset": {"dimension": 4}})
        requests = requests_for(live, make(sum(sizes), seed), sizes)
        at = data.draw(st.integers(0, len(requests)))
        learn(live, requests[:at])
        replayed = model_of({"working_set": {"max_size": 25}, "asset": {"dimension": 4}})
        replayed.restore(*saved(live))
        assert learn(live, requests[at:]) == learn(replayed, requests[at:])
        assert bits(replayed) == bits(live)


@pytest.mark.parametrize(("seconds", "age"), [(3600.0, 3600.0), (-30.0, 0.0)])
def test_the_age_of_a_snapshot_whatever_the_clock_does(seconds: float, age: float) -> None:
    model = Model(1, "m", read_papers_spec(SMALL))
    assert model.snapshot_time is None
    model.note_snapshot(7, datetime.now(UTC) - timedelta(seconds=seconds))
    assert model.snapshot_sequence == 7
    assert age <= boot_seconds() - model.snapshot_time < age + 60
    before = model.snapshot_time
    model.note_snapshot(8, None)
    assert (model.snapshot_sequence, model.snapshot_time) == (8, before)


def test_age_of_a_snapshot_from_the_future_is_unknown() -> None:
    """The clock was put back since: who takes predictions of up to an hour ago gets none."""
    model = Model(1, "m", read_papers_spec(SMALL))
    model.note_snapshot(7, datetime.now(UTC) + timedelta(hours=1))
    assert model.snapshot_time == -math.inf


def test_a_model_that_learns_elsewhere_is_served_from_its_published_view() -> None:
    learner = model_of()
    samples = two_classes(50)
    learn(learner, [("working_set", samples), ("asset", samples)])
    follower = Model(1, "m", learner.model.spec)
    assert follower.describe()["heads"] == {}
    follower.published = learner.model.published
    assert follower.describe() == learner.model.describe()
