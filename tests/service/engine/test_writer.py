"""The writer alone: what it does when the disk lets it down."""

import asyncio
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.service.streams import part, two_classes
from tests.service.writer_bench import work_off
from wolfstream.service.engine.queue_items import LearnRequest
from wolfstream.service.engine.writer import Writer
from wolfstream.service.errors import StorageFailed
from wolfstream.service.samples.validation import Samples
from wolfstream.service.settings import Settings
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.snapshot_format import State
from wolfstream.service.storage.sqlite_journal import SqliteJournal
from wolfstream.service.storage.term import Part, Term
from wolfstream.solver.prepare.named_rows import named_rows


def test_failed_snapshot_retried_nothing_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def full(_: SnapshotFiles, __: int, state: State) -> None:
        tried.append(state.plain["sequence"])
        raise OSError("no space left on device")

    monkeypatch.setattr(SnapshotFiles, "save", full)
    replies: list[Any] = []
    settings = Settings(data=tmp_path, snapshot_samples=10)
    writer = Writer(
        open_storage(tmp_path), settings, lambda given, _: replies.extend(given), math.inf
    )
    writer.recover(lambda _: None)
    model, _ = writer.new_models.create("m", ModelSpec())
    loop = asyncio.new_event_loop()
    samples = two_classes(35)
    for i in range(35):
        one = part(samples, i, i + 1)
        work_off(writer, [LearnRequest(model, "working_set", one, loop.create_future(), 0.0)])
        writer.snapshots.finish(wait=True)  # the next one begins where the last one has failed
    assert [answer["sequence"] for _, answer in replies] == list(range(1, 36))
    writer.close()
    loop.close()
    assert tried == [10, 20, 30, 35]

    monkeypatch.undo()
    again = Writer(open_storage(tmp_path), Settings(data=tmp_path), lambda *_: None)
    again.recover(lambda _: None)
    assert again.models.get("m").published.sequence == 35
    again.close()


def test_names_of_samples_that_could_not_be_logged_are_not_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies: list[Any] = []
    storage, settings = open_storage(tmp_path), Settings(data=tmp_path)
    writer = Writer(storage, settings, lambda given, _: replies.extend(given), math.inf)
    writer.recover(lambda _: None)
    model, _ = writer.new_models.create("m", ModelSpec(prepare={"named": "sparse"}))
    loop = asyncio.new_event_loop()

    def learn(**row: float) -> Any:
        samples = Samples(named_rows([row]), ["a"])
        work_off(writer, [LearnRequest(model, "working_set", samples, loop.create_future(), 0.0)])
        return replies[-1][1]

    def full(
        _: SqliteJournal, parts: Mapping[Term, Part], *_rest: Any
    ) -> dict[Term, StorageFailed]:
        return dict.fromkeys(parts, StorageFailed("no space left on device"))

    with monkeypatch.context() as patch:
        patch.setattr(SqliteJournal, "append", full)
        assert isinstance(learn(lost=1.0), StorageFailed)
    assert model.published.rows.names is None
    assert (model.counts["working_set"].rejected, model.counts["working_set"].learned) == (1, 0)
    assert learn(kept=1.0)["sequence"] == 1
    assert model.published.rows.names is not None
    assert model.published.rows.names.names() == ["kept"]
    writer.close()
    loop.close()


def test_memory_of_deleted_models_is_given_back_once_it_is_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back: list[int] = []
    monkeypatch.setattr(
        "wolfstream.service.engine.writer.give_back_memory", lambda: given_back.append(1)
    )
    writer = Writer(open_storage(tmp_path), Settings(data=tmp_path), lambda *_: None, math.inf)
    writer.recover(lambda _: None)
    for megabytes in (1, 9, 9, 1):
        model, _ = writer.new_models.create("m", ModelSpec())
        writer.models.memory.note(model, megabytes << 20)
        writer.delete(model)
    writer.close()
    assert len(given_back) == 1
