"""Loops that are stopped in the very moment in which they hear something: they end all the same.

Python 3.11's `asyncio.wait_for` swallows a cancellation that comes just after what it waits for.
"""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nats")

from nats.js.kv import KeyValue

from wolfstream.service.cluster.followed_views import FollowedViews
from wolfstream.service.fleet import bucket_watch
from wolfstream.service.fleet.bucket_watch import watch_entries
from wolfstream.service.fleet.connection import _cancel_others
from wolfstream.service.server import worker_server
from wolfstream.service.server.worker_server import _Worker

TICKS = range(6)


class Nobody:
    """The roles of no models, and the other replicas, who are asked for nothing."""

    async def close(self) -> None:
        """End nothing."""

    def responsible(self, _: str) -> "Nobody":
        return self

    def is_here(self, _: object) -> bool:
        return False

    def leads(self, _: str) -> bool:
        return False

    secret = ""


class Watched:
    """A bucket whose watch is the library's, as far as it waits."""

    def __init__(self) -> None:
        self.updates: asyncio.Queue[str] = asyncio.Queue()

    async def watch(self, *_: object, **__: object) -> Any:
        watcher = KeyValue.KeyWatcher(None)
        watcher._updates = self.updates  # type: ignore[assignment]
        watcher._sub = SimpleNamespace(unsubscribe=self._nothing)  # type: ignore[assignment]
        return watcher

    async def _nothing(self) -> None:
        pass


def stopped(
    loop_and_news: Callable[[], tuple[Coroutine[Any, Any, None], Callable[[], object]]], ticks: int
) -> None:
    """Start a loop, let it hear news, and cancel it some turns later; it has to end."""

    async def story() -> None:
        loop, news = loop_and_news()
        task = asyncio.create_task(loop)
        for _ in range(20):
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        news()
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=2)
        ended = bool(done)
        while not task.done():
            task.cancel()
            await asyncio.sleep(0.01)
        assert ended

    asyncio.run(story())


@pytest.mark.parametrize("ticks", TICKS)
def test_a_worker_that_tells_what_it_uses(ticks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_server, "_USE_SECONDS", 0.05)

    def loop_and_news() -> tuple[Coroutine[Any, Any, None], Callable[[], object]]:
        changed = asyncio.Event()
        worker: Any = SimpleNamespace(
            _server=SimpleNamespace(server_state=SimpleNamespace(connections=())),
            _streams=(),
            _memory=SimpleNamespace(held=0),
            _use_changed=changed,
        )
        return _Worker._report_use(worker), changed.set

    stopped(loop_and_news, ticks)


@pytest.mark.parametrize("ticks", TICKS)
def test_a_replica_that_looks_for_leaders(ticks: int) -> None:
    def loop_and_news() -> tuple[Coroutine[Any, Any, None], Callable[[], object]]:
        nobody: Any = Nobody()
        views = FollowedViews(nobody, nobody, lambda _: None, 10)
        return views.run(), lambda: views.use("m")

    stopped(loop_and_news, ticks)


@pytest.mark.parametrize("ticks", TICKS)
@pytest.mark.parametrize("news", ["an entry", "a look"])
def test_a_watch_of_a_bucket(ticks: int, news: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_watch, "_AGAIN_SECONDS", 0.01)

    def loop_and_news() -> tuple[Coroutine[Any, Any, None], Callable[[], object]]:
        bucket, looked = Watched(), asyncio.Event()

        async def look() -> bool:
            await looked.wait()
            return False

        silent = 0.005 if news == "a look" else 10.0
        watch: Any = watch_entries(bucket, ">", lambda _: None, look, silent)  # type: ignore[arg-type]
        return watch, looked.set if news == "a look" else lambda: bucket.updates.put_nowait("a")

    stopped(loop_and_news, ticks)


def test_swallowed_cancellation_closes_connection() -> None:
    async def swallows_one() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()

    async def story() -> None:
        task = asyncio.create_task(swallows_one())
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await _cancel_others()
        assert task.done()

    asyncio.run(story())
