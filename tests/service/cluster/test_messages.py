"""What crosses a channel arrives as it was sent."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np
import pytest

from wolfstream.service import errors
from wolfstream.service.cluster.channel import (
    Channel,
    FrameKind,
    ResourceUse,
    add_counts,
    counts_since,
    labels_from_plain,
    labels_to_plain,
    open_channel,
    refusal_from_plain,
    refusal_to_plain,
)
from wolfstream.service.diagnostics.metrics import Histogram
from wolfstream.service.errors import InDoubt, QuotaExceeded, Refusal
from wolfstream.service.samples.ids import LateLabels


def kinds(kind: type[Refusal] = Refusal) -> Iterator[type[Refusal]]:
    yield kind
    for other in kind.__subclasses__():
        yield from kinds(other)


SHARED = [kind for kind in kinds() if kind.__module__.startswith(errors.__name__)]


@pytest.mark.parametrize("kind", SHARED, ids=lambda kind: kind.__name__)
def test_a_refusal_is_the_same_at_the_other_end(kind: type[Refusal]):
    error = kind("it was wrong", [{"row": 3, "pointer": "/x/3", "detail": "is NaN"}])
    again = refusal_from_plain(msgpack.unpackb(msgpack.packb(refusal_to_plain(error))))
    assert type(again) is kind
    assert (again.detail, again.errors) == (error.detail, error.errors)


def test_unknown_refusal_arrives_as_its_base():
    class Internal(InDoubt):
        """A refusal that only the process that learns knows."""

    plain = msgpack.unpackb(msgpack.packb(refusal_to_plain(Internal("it may be stored"))))
    again = refusal_from_plain(plain)
    assert type(again) is InDoubt
    assert again.detail == "it may be stored"


def test_a_quota_says_when_to_come_again():
    again = refusal_from_plain(
        msgpack.unpackb(msgpack.packb(refusal_to_plain(QuotaExceeded("wait", None, 7))))
    )
    assert isinstance(again, QuotaExceeded)
    assert again.retry_after_seconds == 7


@pytest.mark.parametrize("y", [["a", 1, True], np.array([1.5, -0.0, 1e300])])
def test_labels_for_ids_are_the_same_at_the_other_end(y: Any):
    again = labels_from_plain(msgpack.unpackb(msgpack.packb(labels_to_plain(LateLabels([1], y)))))
    assert again.ids == [1]
    assert type(again.y) is type(y)
    assert list(again.y) == list(y)


def test_what_was_counted_since_adds_up():
    here, there = Histogram(), Histogram()
    here.observe(0.001)
    add_counts(there, counts_since(here, None))
    before = [list(here.counts), here.total]
    here.observe(0.2)
    add_counts(there, counts_since(here, before))
    assert (there.counts, there.total) == (here.counts, here.total)


def test_the_use_of_others_is_that_of_all_without_ones_own():
    one, other = ResourceUse(3, 1, 100), ResourceUse(2, 0, 7)
    assert one.plus(other).minus(one) == other


async def exchange(frames: list[list[Any]]) -> tuple[list[list[Any]], bool]:
    """The frames that one end receives of another, and whether it hears of that one's end."""
    ours, theirs = socket.socketpair()
    received: list[list[Any]] = []
    ended = asyncio.Event()
    here = await open_channel(ours, lambda _, frame: received.append(frame), lambda _: ended.set())
    there = await open_channel(theirs, lambda *_: None, lambda _: None)
    for frame in frames:
        there.send(*frame)
    there.close()
    await asyncio.wait_for(ended.wait(), 10)
    assert not here.open
    return received, ended.is_set()


def test_frames_arrive_in_order_whatever_their_length():
    frames: list[list[Any]] = [
        [FrameKind.LEARN, k, b"x" * length]
        for k, length in enumerate([0, 1, 5_000_000, 3, 70_000, 2])
    ]
    assert asyncio.run(exchange(frames)) == (frames, True)


def test_a_channel_without_another_end_takes_frames_and_forgets_them():
    async def send_to_nobody() -> bool:
        ours, theirs = socket.socketpair()
        ended = asyncio.Event()
        channel: Channel = await open_channel(ours, lambda *_: None, lambda _: ended.set())
        theirs.close()
        await asyncio.wait_for(ended.wait(), 10)
        channel.send(FrameKind.REPORT)
        await asyncio.sleep(0)
        return channel.open

    assert not asyncio.run(send_to_nobody())
