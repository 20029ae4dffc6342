"""A watch of a bucket's entries that misses no changes: while it is silent, the entries are read.

The library's watch is an ordered consumer in the memory of one server. If that server stops, the
client creates it again on another one, in a single attempt after ten seconds. If this fails as
well, the watch stays silent without an error.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import nats.errors
from nats.js.kv import KeyValue

from wolfstream.service.fleet.connection import NatsConnection, NatsRefusal, NatsTimeout

# JetStream's error code: the last message of the subject is not the expected one.
_WRONG_LAST_SEQUENCE = 10071
# Servers that were just started need some seconds to elect leaders.
RETRY_SECONDS, PAUSE_SECONDS = 30.0, 0.5


class EntryTaken(Exception):
    """The bucket already has an entry with this key."""


async def create_entry(connection: NatsConnection, bucket: str, key: str, content: bytes) -> int:
    """Create an entry, and return its revision. Raises EntryTaken, NatsRefusal, NatsTimeout.

    A key whose entry was deleted can be used again.

    Args:
        connection: the connection.
        bucket: name of the bucket.
        key: key of the entry.
        content: its content, which must not be empty.
    """
    subject = f"$KV.{bucket}.{key}"
    last = await connection.last_of_leader(f"KV_{bucket}", subject)
    if last is not None and last.body:  # a message without content records a deletion
        raise EntryTaken
    expected = str(0 if last is None else last.sequence)
    try:
        reply = await connection.ask(
            subject, content, {"Nats-Expected-Last-Subject-Sequence": expected}
        )
    except NatsRefusal as error:
        if error.code == _WRONG_LAST_SEQUENCE:
            raise EntryTaken from None
        raise
    return int(reply["seq"])


async def open_bucket(connection: NatsConnection, bucket: str) -> KeyValue:
    """Return an existing bucket, as soon as its leader responds. Raises nats.errors.Error."""
    deadline = time.monotonic() + RETRY_SECONDS
    while True:
        try:
            return await connection.stream.key_value(bucket)
        except nats.errors.Error:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(PAUSE_SECONDS)


logger = logging.getLogger(__name__)

# How long to wait before a watch that ended is replaced.
_AGAIN_SECONDS = 0.5
# Timeout of `refresh`, because the client may wait for a response without a limit.
_REFRESH_SECONDS = 60.0
# How long a server keeps an unread watch.
_INACTIVE_SECONDS = 30.0


@asynccontextmanager
async def watching(bucket: KeyValue, keys: str) -> AsyncIterator[KeyValue.KeyWatcher]:
    """Open a watch that yields the present entries of some keys, then None, then changes."""
    watcher = await bucket.watch(keys, inactive_threshold=_INACTIVE_SECONDS)
    try:
        yield watcher
    finally:
        # If the connection has ended, an error here would hide a cancellation.
        with suppress(nats.errors.Error):
            await watcher.stop()  # type: ignore[no-untyped-call]  # of the library


async def watch_entries(
    bucket: KeyValue,
    keys: str,
    take: Callable[[KeyValue.Entry], None],
    refresh: Callable[[], Awaitable[bool]],
    silent_seconds: float,
) -> None:
    """Report entries of a bucket as they change, until cancelled.

    Args:
        bucket: to watch.
        keys: pattern of the entries' keys, such as `model.>`.
        take: called with each present entry, perhaps repeatedly, and with each change.
        refresh: reads the present entries, and returns whether the watch has missed any. It is
            called whenever the watch has been silent for `silent_seconds`.
        silent_seconds: see `refresh`.
    """
    while True:
        try:
            async with watching(bucket, keys) as watcher:
                await _report(watcher, take, refresh, silent_seconds)
        except (nats.errors.Error, NatsRefusal, NatsTimeout, TimeoutError):
            pass  # entries that were read before stay valid
        except Exception:  # the next watch may succeed
            logger.exception("bucket not read, trying again: keys=%s", keys)
        await asyncio.sleep(_AGAIN_SECONDS)


async def _report(
    watcher: KeyValue.KeyWatcher,
    take: Callable[[KeyValue.Entry], None],
    refresh: Callable[[], Awaitable[bool]],
    silent_seconds: float,
) -> None:
    """Report entries until the watch turns out to have missed a change."""
    while True:
        try:
            # `watcher.updates` waits by `asyncio.wait_for`, which on Python 3.11 swallows a
            # cancellation that comes just after an entry.
            async with asyncio.timeout(silent_seconds):
                entry = await anext(watcher)
        except TimeoutError:
            async with asyncio.timeout(_REFRESH_SECONDS):
                if await refresh():
                    return
        else:
            if entry is not None:
                take(entry)
