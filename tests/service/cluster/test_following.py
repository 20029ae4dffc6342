"""A follower's view is the leader's, bit for bit, whatever it has missed."""

from typing import Any

import numpy as np
import pytest

from tests.service.specs import PAPERS
from wolfstream.service.cluster.follower import Follower, OutOfStep
from wolfstream.service.cluster.tree import TreeWriter
from wolfstream.service.cluster.versions import Versions, ViewVersion
from wolfstream.service.heads.kinds import KINDS
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.samples.validation import Samples, read_rows, read_samples
from wolfstream.service.spec.model import ModelSpec

SPECS: dict[str, dict[str, Any]] = {
    # So few members that slots are freed and filled again.
    "working set": {**PAPERS, "working_set": {"max_size": 24}},
    "sparse": {**PAPERS, "working_set": {"max_size": 24}},
    "default": {},
    "table": {"working_set": {"max_size": 24}},
    "nystrom": {**PAPERS, "asset": {"features": "nystrom", "dimension": 16}, "serve": "asset"},
    "regression": {"task": "regression", "working_set": None},
}
NAMED = ("sparse", "table")


class Stream:
    """A model that learns, and rows to ask it."""

    def __init__(self, kind: str) -> None:
        self.kind, self._random = kind, np.random.default_rng(7)
        self.model = Model(1, "m", ModelSpec.model_validate(SPECS[kind]))
        self.learner = Learner(self.model, "first")
        self._names = 5

    @property
    def published(self) -> ModelView:
        return self.model.published

    def rows(self, n: int) -> list[Any]:
        X = self._random.normal(size=(n, 5))
        if self.kind not in NAMED:
            return X.tolist()
        names = [f"n{k}" for k in range(5)]
        rows = [dict(zip(names, row, strict=True)) for row in X.tolist()]
        if self.kind == "sparse":
            for row in rows:
                self._names += 1
                row[f"n{self._names}"] = 1.0
        else:
            for row, side in zip(rows, self._random.integers(0, 40, n).tolist(), strict=True):
                row |= {"side": f"side {side}", "colour": f"colour {side % 7}"}
        return rows

    def learn(self, n: int) -> None:
        x = self.rows(n)
        first = [row if isinstance(row, list) else list(row.values()) for row in x]
        y: list[Any] = [row[0] * row[1] for row in first]
        if self.model.spec.task == "classification":
            y = ["above" if value > 0 else "below" for value in y]
        prepared = self.model.spec.prepare is not None
        samples: Samples = read_samples({"x": x, "y": y}, self.model.spec.task, prepared=prepared)
        call = "asset" if self.model.spec.serve == "asset" else "samples"
        self.learner.absorb(self.model.head_of[call], samples)
        self.learner.publish()


def said(published: ModelView, rows: list[Any], prepared: bool) -> list[Any]:
    X = published.head_rows(read_rows({"x": rows}, prepared=prepared))
    heads = [head for head, view in published.heads.items() if not view.lacks]
    assert heads
    answers = [published.predict(head, X) for head in heads]
    return [(one.prediction, one.decision) for one in answers]


def written(published: ModelView) -> tuple[Any, dict[str, bytes]]:
    """All that a view is, as plain data."""
    writer = TreeWriter()
    names = published.rows.names
    known = [] if names is None else names.names()[: published.rows.dimension]
    nameless = published._replace(rows=published.rows._replace(names=None))
    tree = [known, writer.write(nameless)]
    return tree, {path: a.tobytes() for path, a in writer.arrays.items()}


@pytest.mark.parametrize("kind", SPECS)
def test_a_follower_that_misses_versions_has_the_bits_of_the_latest(kind: str):
    stream, versions, follower = Stream(kind), Versions(), Follower()
    stream.learn(40)
    prepared = stream.model.spec.prepare is not None
    for missed in (1, 1, 3, 2, 1, 30, 1):
        for _ in range(missed):
            stream.learn(7)
            assert versions.record(stream.published)
        view = follower.take(versions.newer(follower.version))
        assert follower.version == versions.latest
        assert written(view) == written(stream.published)
        rows = stream.rows(9)
        assert said(view, rows, prepared) == said(stream.published, rows, prepared)


EVERY_KIND = [spec for kind in KINDS.values() for spec in kind.specs()]


@pytest.mark.parametrize("spec", EVERY_KIND, ids=lambda spec: "-".join([*spec.heads, spec.task]))
def test_the_view_of_every_kind_of_head_can_be_followed(spec: ModelSpec):
    model = Model(1, "m", spec)
    learner, versions, follower = Learner(model, "first"), Versions(), Follower()
    random = np.random.default_rng(1)
    for _ in range(2):
        X = random.normal(size=(12, 3))
        y = X[:, 0].tolist() if spec.task == "regression" else ["a", "b", "c"] * 4
        samples = read_samples({"x": X.tolist(), "y": y}, spec.task)
        learner.absorb(model.head_of["samples"], samples)
        learner.publish()
        versions.record(model.published)
        assert written(follower.take(versions.newer(follower.version))) == written(model.published)


def test_held_view_unchanged_by_next():
    stream, versions, follower = Stream("working set"), Versions(), Follower()
    stream.learn(40)
    versions.record(stream.published)
    before = follower.take(versions.newer(None))
    as_it_was = written(before)
    stream.learn(40)
    versions.record(stream.published)
    follower.take(versions.newer(follower.version))
    assert written(before) == as_it_was


def test_differences_are_shorter_than_everything():
    stream, versions = Stream("default"), Versions()
    stream.learn(600)
    versions.record(stream.published)
    held = versions.latest
    stream.learn(1)
    versions.record(stream.published)
    assert len(versions.newer(held)) < len(versions.newer(None)) / 2


def test_the_same_view_is_no_new_version():
    stream, versions = Stream("working set"), Versions()
    assert versions.record(stream.published)
    assert not versions.record(stream.published)


def test_versions_that_begin_again_are_sent_whole():
    stream, follower = Stream("working set"), Follower()
    stream.learn(40)
    for versions in (Versions(), Versions()):
        versions.record(stream.published)
        view = follower.take(versions.newer(follower.version))
        assert view.sequence == 40
        assert follower.version == versions.latest


def test_what_follows_another_version_is_refused():
    stream, versions, follower = Stream("working set"), Versions(), Follower()
    stream.learn(40)
    versions.record(stream.published)
    held = versions.latest
    stream.learn(3)
    versions.record(stream.published)
    with pytest.raises(OutOfStep, match="follows version 1"):
        follower.take(versions.newer(held))
    assert follower.version is None


@pytest.mark.parametrize("content", [b"", b"\x00", b"\x93\x01\x02\x03", b"\xc1"])
def test_what_is_no_version_is_refused(content: bytes):
    with pytest.raises(OutOfStep):
        Follower().take(content)


def test_a_damaged_version_is_refused_or_read_and_never_runs_anything():
    stream, versions = Stream("working set"), Versions()
    stream.learn(30)
    versions.record(stream.published)
    whole = versions.newer(None)
    random = np.random.default_rng(3)
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[int(random.integers(len(whole) // 8))] ^= int(random.integers(1, 256))
        follower = Follower()
        try:
            follower.take(bytes(damaged))
        except OutOfStep:
            assert follower.version is None


def test_differences_that_are_kept_take_no_more_than_everything():
    stream, versions = Stream("working set"), Versions()
    stream.learn(40)
    for _ in range(50):
        stream.learn(5)
        versions.record(stream.published)
    assert versions.n_bytes <= 2.1 * len(versions.newer(None))
    assert len(versions.newer(ViewVersion(versions.latest.numbering, 1))) <= len(
        versions.newer(None)
    )


def test_view_of_another_version_of_the_program_is_refused(monkeypatch: pytest.MonkeyPatch):
    stream = Stream("working set")
    stream.learn(10)
    versions = Versions()
    versions.record(stream.published)
    monkeypatch.setattr("wolfstream.service.cluster.versions.VIEW_FORMAT", "another")
    with pytest.raises(OutOfStep, match="another version of the program"):
        Follower().take(versions.newer(None))
