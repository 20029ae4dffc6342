"""A watch of a bucket, and the looks beside it, which find what it does not tell."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.service.nats import MISSING, NatsServers
from wolfstream.service.access.keys import Key, KeysError

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

import nats.errors
from nats.js.errors import KeyDeletedError, KeyNotFoundError
from nats.js.kv import KeyValue

from tests.service.fleet.trio import wait_for
from wolfstream.service.fleet import bucket_watch
from wolfstream.service.fleet.bucket_watch import watch_entries
from wolfstream.service.fleet.connection import NatsConnection, NatsTimeout
from wolfstream.service.fleet.opening import keys_at

KEY = Key(
    name="a",
    id="i",
    digest="0" * 64,
    scopes=("admin",),
    prefix="",
    created=datetime(2026, 1, 1, tzinfo=UTC),
    samples_per_second=None,
)


class Watcher:
    """A watch that tells some entries, and then nothing."""

    def __init__(self, entries: Iterator[Any], stop: Callable[[], Awaitable[None]]) -> None:
        self._entries, self.stop = entries, stop

    async def __anext__(self) -> Any:
        for entry in self._entries:
            return entry
        return await asyncio.Event().wait()


class Bucket:
    """A bucket whose watches tell what the test puts into them.

    told: what each watch tells, the first of them first. failures: so many watches cannot be
    opened. stopped: how many were ended.
    """

    def __init__(self, told: list[list[Any]]) -> None:
        self.told, self.failures, self.opened, self.stopped = told, 0, 0, 0

    async def watch(self, keys: str, **_: Any) -> Any:
        assert keys == "some.>"
        if self.failures:
            self.failures -= 1
            raise nats.errors.NoServersError
        entries = iter(self.told[self.opened])
        self.opened += 1

        return Watcher(entries, self._stop)

    async def _stop(self) -> None:
        self.stopped += 1
        raise nats.errors.ConnectionClosedError


def entries(*values: Any) -> list[Any]:
    return [*values, None]


def followed(
    bucket: Any, until: Callable[[list[Any]], bool], looks: list[bool], take: Any = None
) -> list[Any]:
    """Follow a bucket until something holds of what was taken; return that.

    looks: what they find; afterwards they find nothing.
    """
    taken = list[Any]()

    def took(entry: KeyValue.Entry) -> None:
        if take is not None:
            take(entry)
        taken.append(entry)

    async def look() -> bool:
        return looks.pop(0) if looks else False

    async def run() -> None:
        following = asyncio.create_task(watch_entries(bucket, "some.>", took, look, 0.01))
        while not until(taken):  # noqa: ASYNC110 - nobody would set an event
            await asyncio.sleep(0)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    asyncio.run(run())
    return taken


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_watch, "_AGAIN_SECONDS", 0.0)


def test_what_is_there_and_what_comes_is_handed_on():
    bucket = Bucket([[*entries("a", "b"), "c"]])
    assert followed(bucket, lambda taken: len(taken) == 3, []) == ["a", "b", "c"]
    assert (bucket.opened, bucket.stopped) == (1, 1)


def test_a_watch_that_has_missed_something_is_replaced():
    bucket = Bucket([entries("a"), entries("a", "b")])
    taken = followed(bucket, lambda taken: "b" in taken, [False, True])
    assert taken == ["a", "a", "b"]
    assert bucket.stopped == 2


def test_a_watch_that_cannot_be_opened_is_tried_again():
    bucket = Bucket([entries("a")])
    bucket.failures = 3
    assert followed(bucket, lambda taken: "a" in taken, []) == ["a"]


def test_what_cannot_be_read_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture):
    bucket = Bucket([entries("damaged"), entries("a")])

    def take(entry: Any) -> None:
        if entry == "damaged":
            raise ValueError("no JSON")

    with caplog.at_level(logging.ERROR):
        assert followed(bucket, lambda taken: "a" in taken, [], take) == ["a"]
    assert "no JSON" in caplog.text


def test_keys_are_told_of_without_asking(servers: NatsServers, monkeypatch: pytest.MonkeyPatch):
    async def unanswered(_: str) -> None:
        raise nats.errors.TimeoutError

    with keys_at(servers.addresses) as own, keys_at(servers.addresses) as other:
        monkeypatch.setattr(other._bucket, "get", unanswered)
        other.watch()
        with own.changing() as keys:
            keys.append(KEY)
        wait_for(lambda: other.read() == [KEY])
        with own.changing() as keys:
            keys.clear()
        wait_for(lambda: other.read() == [])


@pytest.mark.parametrize("error", [KeyNotFoundError, KeyDeletedError])
def test_a_copy_of_the_keys_that_lags_admits_nobody(
    servers: NatsServers, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
):
    async def not_yet(*_: object) -> None:
        raise error

    with keys_at(servers.addresses) as own:
        with own.changing() as keys:
            keys[:] = [KEY]
        monkeypatch.setattr(KeyValue, "get", not_yet)
        with keys_at(servers.addresses) as other:
            assert other.read() == [KEY]
            assert other.version() == own.version()


def test_absence_by_copy_alone_unreadable(servers: NatsServers, monkeypatch: pytest.MonkeyPatch):
    async def not_yet(*_: object) -> None:
        raise KeyNotFoundError

    async def unanswered(*_: object) -> None:
        raise NatsTimeout("no answer")

    monkeypatch.setattr(KeyValue, "get", not_yet)
    monkeypatch.setattr(NatsConnection, "last_of_leader", unanswered)
    with pytest.raises(KeysError, match="cannot be read"), keys_at(servers.addresses):
        pass
