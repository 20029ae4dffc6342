"""The writer alone: what it does when the disk lets it down."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from service.admission import LearnRequest
from service.errors import StorageFailed
from service.log import Log
from service.names import named_rows
from service.samples import Samples
from service.settings import Settings
from service.snapshots import Snapshots, State
from service.spec import ModelSpec
from service.writer import Writer
from tests.service.streams import part, two_classes


def test_a_failing_snapshot_is_tried_again_after_as_many_samples_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def full(_: Snapshots, __: int, state: State) -> None:
        tried.append(state.plain["sequence"])
        raise OSError("no space left on device")

    monkeypatch.setattr(Snapshots, "save", full)
    replies: list[Any] = []
    writer = Writer(
        Settings(data=tmp_path, snapshot_samples=10), lambda given, _: replies.extend(given)
    )
    writer.recover()
    model, _ = writer.create("m", ModelSpec())
    loop = asyncio.new_event_loop()
    samples = two_classes(35)
    for i in range(35):
        one = part(samples, i, i + 1)
        writer.handle([LearnRequest(model, "working_set", one, loop.create_future(), 0.0)])
    assert [answer["sequence"] for _, answer in replies] == list(range(1, 36))
    writer.close()
    loop.close()
    assert tried == [10, 20, 30, 35]

    monkeypatch.undo()
    again = Writer(Settings(data=tmp_path), lambda *_: None)
    again.recover()
    assert again.models["m"].sequence == 35
    again.close()


def test_names_of_samples_that_could_not_be_logged_are_not_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies: list[Any] = []
    writer = Writer(Settings(data=tmp_path), lambda given, _: replies.extend(given))
    writer.recover()
    model, _ = writer.create("m", ModelSpec())
    loop = asyncio.new_event_loop()

    def learn(**row: float) -> Any:
        samples = Samples(named_rows([row]), ["a"])
        writer.handle([LearnRequest(model, "working_set", samples, loop.create_future(), 0.0)])
        return replies[-1][1]

    def full(*_: Any) -> None:
        raise StorageFailed("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Log, "append", full)
        assert isinstance(learn(lost=1.0), StorageFailed)
    assert model.names is None
    assert (model.counts["working_set"].rejected, model.counts["working_set"].learned) == (1, 0)
    assert learn(kept=1.0)["sequence"] == 1
    assert model.names is not None
    assert model.names.names() == ["kept"]
    writer.close()
    loop.close()
