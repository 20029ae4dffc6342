"""Requests that come together are committed together."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.service.engine.test_failures import NoWarmUp
from wolfstream.service.engine.facade import Engine
from wolfstream.service.engine.intake import GroupDelay
from wolfstream.service.samples.ids import RowId
from wolfstream.service.samples.validation import Samples
from wolfstream.service.settings import Settings
from wolfstream.service.spec.model import read_spec
from wolfstream.service.storage.data_directory import open_storage

ROWS = np.array([[0.0, 1.0], [2.0, 3.0]])


def turns_until_released(monkeypatch: pytest.MonkeyPatch, seconds_a_turn: float) -> list[int]:
    """The turns of the loop after which each of two delays ended, one after another."""
    clock = [0.0]
    monkeypatch.setattr("wolfstream.service.engine.intake.time.monotonic", lambda: clock[0])

    async def run() -> list[int]:
        turn, released = 0, list[int]()
        gathered = GroupDelay(lambda: released.append(turn))
        for _ in range(2):
            gathered.begin()
            gathered.begin()
            began, n_before = turn, len(released)
            while len(released) == n_before:
                await asyncio.sleep(0)
                turn += 1
                clock[0] += seconds_a_turn
                assert turn < 100
            released[-1] -= began
        return released

    return asyncio.run(run())


class TestGroupDelay:
    def test_it_is_released_once_after_a_few_turns(self, monkeypatch: pytest.MonkeyPatch):
        first, second = turns_until_released(monkeypatch, 0.0)
        assert first == second > 1

    def test_turns_that_last_release_it_sooner(self, monkeypatch: pytest.MonkeyPatch):
        assert turns_until_released(monkeypatch, 0.01) == [1, 1]

    def test_requests_that_go_on_coming_extend_it_up_to_its_bound(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        alone, _ = turns_until_released(monkeypatch, 0.0)
        clock = [0.0]
        now = "wolfstream.service.engine.intake.time.monotonic"
        monkeypatch.setattr(now, lambda: clock[0])

        async def released_after(requests: int, seconds_a_turn: float) -> int:
            """The turns to the release, where each of the first turns brings a request."""
            released = list[int]()
            delay, turn = GroupDelay(lambda: released.append(turn)), 0
            while not released:
                if turn < requests:
                    delay.begin()
                await asyncio.sleep(0)
                turn += 1
                clock[0] += seconds_a_turn
            return released[0]

        assert asyncio.run(released_after(20, 0.0)) == alone + 19
        assert asyncio.run(released_after(20, 0.001)) < alone + 19


def with_engine(tmp_path: Path, work: Callable[[Engine], Awaitable[Any]]) -> Any:
    """What a coroutine returns that runs with an engine, which has the model m."""

    async def run() -> Any:
        storage = open_storage(tmp_path)
        engine = Engine(Settings(data=tmp_path), storage, NoWarmUp(), {})  # type: ignore[arg-type]
        await engine.ready
        try:
            await engine.orders.create("m", read_spec({"asset": None}))
            return await work(engine)
        finally:
            await engine.stop()
            storage.close()

    return asyncio.run(run())


async def remembered(engine: Engine, name: str) -> Any:
    """The ids in the answer to a prediction, once that is durable."""
    ids: list[RowId] = [f"{name}{row}" for row in range(len(ROWS))]
    said = {"prediction": ["a"] * len(ids), "decision": [None] * len(ids), "ids": ids}
    at = {"head": "working_set", "sequence": 0, "epoch": "e"}
    return (await engine.remember(engine.model("m"), ids, ROWS, {**said, **at}))["ids"]


class TestEngine:
    def test_predictions_of_one_turn_share_a_commit(self, tmp_path: Path):
        async def work(engine: Engine) -> int:
            before = sum(engine.metrics.commit.counts)
            answers = await asyncio.gather(*(remembered(engine, name) for name in "abcd"))
            assert [ids[0] for ids in answers] == ["a0", "b0", "c0", "d0"]
            return sum(engine.metrics.commit.counts) - before

        assert with_engine(tmp_path, work) == 1

    def test_samples_of_one_turn_share_a_commit_and_keep_their_order(self, tmp_path: Path):
        async def work(engine: Engine) -> int:
            before = sum(engine.metrics.commit.counts)
            one = Samples(ROWS, ["a", "b"])
            posts = [engine.submit(engine.model("m"), "working_set", one) for _ in range(4)]
            answers = await asyncio.gather(*posts)
            assert [answer["sequence"] for answer in answers] == [2, 4, 6, 8]
            return sum(engine.metrics.commit.counts) - before

        assert with_engine(tmp_path, work) == 1

    def test_what_is_gathered_while_the_server_stops_is_answered(self, tmp_path: Path):
        async def work(engine: Engine) -> Any:
            asking = asyncio.ensure_future(remembered(engine, "a"))
            await asyncio.sleep(0)
            assert engine.waiting().samples == len(ROWS)
            await engine.stop()
            return await asking

        assert with_engine(tmp_path, work) == ["a0", "a1"]
