"""Challengers learn in turns: when they ask for something to learn, and when they rest."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from wolfstream.service.engine import followers
from wolfstream.service.engine.challengers import Turn
from wolfstream.service.engine.followers import Followers
from wolfstream.service.engine.orders import Orders
from wolfstream.service.errors import NotLeader
from wolfstream.service.model.live import Model
from wolfstream.service.settings import Settings
from wolfstream.service.spec.model import ModelSpec

NOTHING = Turn([], 1)


class Timed(asyncio.SelectorEventLoop):
    """An event loop that knows which times were waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.times = list[float]()

    def call_at(self, when: float, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        self.times.append(when)
        return super().call_at(when, *args, **kwargs)


class Bench:
    """A challenger of a champion, of which nobody learns anything.

    asked: how often the challenger asked for something to learn.
    """

    def __init__(self) -> None:
        self.champion = Model(1, "a", ModelSpec())
        self.challenger = Model(2, "b", ModelSpec())
        self.challenger.champion = self.champion
        self.asked = 0
        self.followers = Followers(self.take, lambda *_: None, lambda: False, lambda _: None)

    async def take(self, model: Model) -> Turn:
        self.asked += 1
        if not model.led or model.champion is None:
            raise NotLeader("nothing comes for it any more")
        return NOTHING

    def fall_behind(self) -> None:
        published: Any = SimpleNamespace(sequence=10)
        self.champion.published = published

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - a timer of the test would count as one
            await asyncio.sleep(0)

    @property
    def ended(self) -> bool:
        return not [task for task in asyncio.all_tasks() if "_follow" in repr(task.get_coro())]


def run(story: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    """Run a story of a challenger that has asked once, and got nothing."""

    async def told() -> None:
        bench = Bench()
        bench.followers.start(bench.challenger)
        await bench.until(lambda: bench.asked == 1)
        await story(bench)
        await bench.followers.stop()

    with asyncio.Runner(loop_factory=Timed) as runner:
        runner.run(told())


async def settle() -> None:
    """Let everything happen that waits for no time."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_one_that_has_caught_up_waits_for_news_alone():
    async def story(bench: Bench) -> None:
        loop: Any = asyncio.get_running_loop()
        await settle()
        assert (loop.times, bench.asked) == ([], 1)
        bench.followers.wake([bench.champion])
        await bench.until(lambda: bench.asked == 2)

    run(story)


@pytest.mark.parametrize("ticks", range(6))
def test_a_stop_just_after_news_ends_it(ticks: int):
    async def story(bench: Bench) -> None:
        bench.fall_behind()
        for _ in range(2):  # it waits for news, and for a time, from the first on
            bench.followers.wake([bench.champion])
            await settle()
        bench.followers.wake([bench.champion])
        for _ in range(ticks):
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await bench.followers.stop()
        assert bench.ended

    run(story)


def test_its_own_turns_do_not_wake_it():
    async def story(bench: Bench) -> None:
        bench.followers.wake([bench.challenger])
        await settle()
        assert bench.asked == 1

    run(story)


def test_one_whose_champions_log_could_not_be_read_asks_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(followers, "_LOOK_SECONDS", 0.001)

    async def story(bench: Bench) -> None:
        bench.fall_behind()
        bench.followers.wake([bench.champion])
        await bench.until(lambda: bench.asked == 4)

    run(story)


def test_one_that_was_rolled_back_asks_again():
    """It may have been broken, and may be behind."""

    async def story(bench: Bench) -> None:
        ready: Any = SimpleNamespace(wait=lambda: asyncio.sleep(0))
        queue: Any = SimpleNamespace(put=lambda order, *_, **__: order.waiter.set_result({}))
        unused: Any = None
        orders = Orders(Settings(), unused, queue, unused, ready, bench.followers.start)
        await orders.roll_back(bench.challenger, 0)
        await bench.until(lambda: bench.asked == 2)
        await orders.roll_back(bench.champion, 0)
        await settle()
        assert bench.asked == 2

    run(story)


def test_one_that_another_replica_leads_ends():
    async def story(bench: Bench) -> None:
        await settle()
        bench.challenger.led = False
        bench.followers.wake([])
        await bench.until(lambda: bench.ended)

    run(story)


def test_one_whose_champion_was_deleted_ends():
    async def story(bench: Bench) -> None:
        await settle()
        bench.challenger.champion = None
        bench.followers.wake([])
        await bench.until(lambda: bench.ended)

    run(story)
