"""Events on their way: all listeners get them, a late one what is kept, nobody waits."""

import asyncio
import json
from typing import Any

from wolfstream.service.monitor.channel import EventChannel

LARGE = "x" * 60_000


async def first(channel: EventChannel, n: int, last_id: str | None = None) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    events = channel.listen(last_id)
    async for event in events:
        lines = event.decode().strip().split("\n")
        found.append(dict(line.split(": ", 1) for line in lines))  # type: ignore[arg-type]
        if len(found) == n:
            break
    await events.aclose()  # type: ignore[attr-defined]
    return found


def told(events: list[dict[str, str]]) -> list[Any]:
    return [json.loads(event["data"]).get("n") for event in events]


def published(n: int, **more: Any) -> EventChannel:
    channel = EventChannel()
    for i in range(n):
        channel.publish("state", {"n": i, **more})
    return channel


def test_listener_begins_newest_or_resumes():
    async def run() -> None:
        channel = published(5)
        (newest,) = await first(channel, 1)
        assert told([newest]) == [4]
        name = newest["id"].partition("-")[0]
        assert told(await first(channel, 3, f"{name}-2")) == [2, 3, 4]
        assert told(await first(channel, 1, "other-2")) == [4]
        assert told(await first(channel, 1, f"{name}-99")) == [4]
        assert channel.listeners == 0

    asyncio.run(run())


def test_what_is_kept_is_bounded_in_number_and_bytes():
    async def run() -> None:
        for channel, kept in ((published(100), 30), (published(100, text=LARGE), 2)):
            (newest,) = await first(channel, 1)
            name = newest["id"].partition("-")[0]
            oldest = 100 - kept
            assert told(await first(channel, kept, f"{name}-{oldest}")) == list(range(oldest, 100))
            assert told(await first(channel, 1, f"{name}-{oldest - 1}")) == [99]

    asyncio.run(run())


def test_a_slow_listener_misses_the_oldest_and_a_close_ends_all():
    async def run() -> None:
        channel = published(1)
        slow = channel.listen(None)
        await anext(slow)
        for i in range(1, 200):
            channel.publish("state", {"n": i})
        channel.close("deleted")
        rest = [event async for event in slow]
        assert len(rest) == 30
        assert b'"reason":"deleted"' in rest[-1]
        assert [event async for event in channel.listen(None)] == rest[-1:]

    asyncio.run(run())
