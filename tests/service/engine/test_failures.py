"""After the acknowledgement nothing is fatal, and an error says what became of the samples."""

import asyncio
import shutil
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.engine.test_exactly_once import Bench
from tests.service.streams import part, two_classes
from wolfstream.service.engine.facade import Engine
from wolfstream.service.engine.writer import Writer
from wolfstream.service.errors import (
    InDoubt,
    NotReady,
    NotYetLearned,
    Refusal,
    ServerFailed,
    SnapshotFailed,
    UnknownModel,
)
from wolfstream.service.model.learner import Learner
from wolfstream.service.settings import Settings
from wolfstream.service.spec.model import read_spec
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.web.formats.problems import problem_of
from wolfstream.service.web.routes.server import check_alive

SAMPLES = two_classes(100)
SPEC = read_spec({"working_set": {"max_size": 20}, "asset": None})


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, snapshot_samples=6)
    yield bench
    bench.kill()


def fail(error: Exception) -> Callable[..., Any]:
    def raise_it(*_: Any, **__: Any) -> Any:
        raise error

    return raise_it


class TestAfterTheAcknowledgement:
    @pytest.mark.parametrize(
        ("owner", "name"),
        [(np, "savez"), (Learner, "state"), (SnapshotFiles, "save"), (SnapshotFiles, "sequences")],
        ids=["savez", "state", "save", "sequences"],
    )
    @pytest.mark.parametrize("error", [MemoryError(), ValueError("odd"), OSError(5, "I/O error")])
    def test_a_snapshot_that_fails_stops_nothing(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, error: Exception
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fail(error))
            for number in range(8):
                assert bench.ask(str(number), number)["sequence"] == 3 * (number + 1)
        bench.crash()
        assert bench.model.published.sequence == 24

    def test_a_snapshot_folder_that_is_gone(self, bench: Bench):
        for number in range(6):
            bench.ask(str(number), number)
            shutil.rmtree(bench.settings.data / "snapshots", ignore_errors=True)
        bench.writer.snapshots.finish(wait=True)
        assert bench.ask("last", 6)["sequence"] == 21

    def test_an_answer_that_cannot_be_kept(self, bench: Bench, monkeypatch: pytest.MonkeyPatch):
        with monkeypatch.context() as patch:
            patch.setattr(
                "wolfstream.service.storage.entries.KeyedRequest.with_answer", fail(MemoryError())
            )
            assert bench.ask("k", 0)["sequence"] == 3
        again = bench.ask("k", 0)
        assert problem_of(again)["outcome"] == "durable"
        assert bench.ask("l", 1)["sequence"] == 6


class TestOutcomes:
    def test_not_learned_before_it_is_written(self, bench: Bench, monkeypatch: pytest.MonkeyPatch):
        with monkeypatch.context() as patch:
            patch.setattr("wolfstream.service.engine.admission.with_record", fail(MemoryError()))
            refused = bench.ask("k", 0)
        assert isinstance(refused, ServerFailed)
        assert problem_of(refused)["outcome"] == "not-learned"
        assert bench.ask("k", 0)["sequence"] == 3

    def test_durable_where_learning_fails(self, bench: Bench, monkeypatch: pytest.MonkeyPatch):
        with monkeypatch.context() as patch:
            patch.setattr(Learner, "absorb", fail(MemoryError()))
            first, again = bench.ask("k", 0), bench.ask("k", 0)
        assert isinstance(first, NotYetLearned)
        assert isinstance(again, NotYetLearned)
        assert problem_of(first)["outcome"] == "durable"
        assert problem_of(bench.ask("other", 1))["outcome"] == "not-learned"
        assert "got no more memory; DELETE models" in bench.model.broken
        bench.crash()
        assert bench.ask("k", 0)["replayed"]
        assert bench.model.published.sequence == 3

    def test_unknown_where_the_journal_fails_unexpectedly(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ):
        """That ends the writer, and a restart settles it."""
        with monkeypatch.context() as patch:
            patch.setattr(
                "wolfstream.service.storage.sqlite_journal.insert_keys", fail(MemoryError())
            )
            with pytest.raises(MemoryError):
                bench.ask("k", 0)
        bench.crash()
        assert bench.ask("k", 0)["sequence"] == 3


class NoWarmUp:
    """Compiles nothing."""

    def before_ready(self, *_: Any) -> None:
        pass

    def stop(self) -> None:
        pass

    ended = True


@pytest.fixture
def within(tmp_path: Path) -> Callable[[Callable[[Engine], Awaitable[None]]], None]:
    """Runs a coroutine with an engine that has the model m of 10 samples."""

    async def run(work: Callable[[Engine], Awaitable[None]]) -> None:
        storage = open_storage(tmp_path)
        engine = Engine(Settings(data=tmp_path), storage, NoWarmUp(), {})  # type: ignore[arg-type]
        await engine.ready
        try:
            await engine.orders.create("m", SPEC)
            await learn(engine, 0, 10)
            await work(engine)
        finally:
            await engine.stop()
            storage.close()

    return lambda work: asyncio.run(run(work))


def learn(engine: Engine, start: int, stop: int) -> "asyncio.Future[Any]":
    return engine.submit(engine.model("m"), "working_set", part(SAMPLES, start, stop))


class TestWriterThatDied:
    def test_predictions_go_on_and_all_who_wait_are_answered(
        self, within: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ):
        async def work(engine: Engine) -> None:
            monkeypatch.setattr(Writer, "begin", fail(RuntimeError("a defect")))
            waiting = [learn(engine, i, i + 1) for i in range(10, 15)]
            ends = await asyncio.gather(*waiting, return_exceptions=True)
            assert {type(end) for end in ends} <= {InDoubt, ServerFailed}
            assert problem_of(_refusal(ends[0]))["outcome"] == "unknown"
            assert engine.model("m").published.sequence == 10
            assert [model.name for model in engine.models()] == ["m"]
            with pytest.raises(ServerFailed, match="writer failed"):
                check_alive(engine)
            with pytest.raises(NotReady, match="writer failed"):
                learn(engine, 15, 16)
            with pytest.raises(NotReady):
                await engine.orders.delete(engine.model("m"))

        within(work)

    def test_an_order_that_fails_is_answered_and_does_not_kill_it(
        self, within: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ):
        async def work(engine: Engine) -> None:
            with monkeypatch.context() as patch:
                patch.setattr(Learner, "roll_back", fail(RuntimeError("a defect")))
                await engine.orders.snapshot(engine.model("m"))
                with pytest.raises(NotYetLearned):
                    await engine.orders.roll_back(engine.model("m"), 10)
            with monkeypatch.context() as patch:
                patch.setattr(
                    "wolfstream.service.engine.new_models.Learner", fail(RuntimeError("a defect"))
                )
                with pytest.raises(InDoubt, match="a defect"):
                    await engine.orders.create("n", SPEC)
            check_alive(engine)
            await engine.orders.create("n", SPEC)

        within(work)

    def test_a_snapshot_on_request_that_fails(
        self, within: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ):
        async def work(engine: Engine) -> None:
            with monkeypatch.context() as patch:
                patch.setattr(np, "savez", fail(MemoryError()))
                with pytest.raises(SnapshotFailed):
                    await engine.orders.snapshot(engine.model("m"))
            assert await engine.orders.snapshot(engine.model("m")) == 10

        within(work)

    def test_a_snapshot_of_a_model_that_is_deleted_meanwhile(
        self, within: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ):
        may = threading.Event()

        def late(snapshots: SnapshotFiles, model: int, _: Any) -> None:
            may.wait(30)
            snapshots.delete(model)
            raise FileNotFoundError(2, "No such file or directory", "/data/1.partial")

        async def work(engine: Engine) -> None:
            model = engine.model("m")
            with monkeypatch.context() as patch:
                patch.setattr(SnapshotFiles, "save", late)
                saving = asyncio.ensure_future(engine.orders.snapshot(model))
                await asyncio.sleep(0.1)
                await engine.orders.delete(model)
                may.set()
                with pytest.raises(UnknownModel, match="was deleted"):
                    await saving

        within(work)

    def test_what_failed_is_told_without_the_path(
        self, within: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ):
        async def work(engine: Engine) -> None:
            with monkeypatch.context() as patch:
                patch.setattr(SnapshotFiles, "save", fail(OSError(28, "No space left", "/data/1")))
                with pytest.raises(SnapshotFailed, match=r"^No space left; the journal"):
                    await engine.orders.snapshot(engine.model("m"))

        within(work)


def _refusal(end: Any) -> Refusal:
    assert isinstance(end, Refusal)
    return end
