"""Entries of a bucket as they change: a watch reports them, and a look finds what it has missed.

The library's watch is an ordered consumer in the memory of one server. Where that server ends, the
client asks for another one after ten seconds, once; if that fails, the watch is silent for ever.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import nats.errors
from nats.js.kv import KeyValue

from wolfstream.service.fleet.connection import Refused, Unanswered

logger = logging.getLogger(__name__)

# When another watch follows one that ended.
_AGAIN_SECONDS = 0.5
# How long a look may take, whose answer may never come.
_PATIENCE_SECONDS = 60.0
# A server keeps a watch that nobody reads for so long.
_KEPT_SECONDS = 30.0


@asynccontextmanager
async def watching(bucket: KeyValue, keys: str) -> AsyncIterator[KeyValue.KeyWatcher]:
    """Open a watch: the present entries of some keys, None, and what changes later."""
    watcher = await bucket.watch(keys, inactive_threshold=_KEPT_SECONDS)
    try:
        yield watcher
    finally:
        # After the connection's end, too, where an error would take the place of a cancellation.
        with suppress(nats.errors.Error):
            await watcher.stop()  # type: ignore[no-untyped-call]  # of the library


async def follow(
    bucket: KeyValue,
    keys: str,
    take: Callable[[KeyValue.Entry], None],
    look: Callable[[], Awaitable[bool]],
    silent_seconds: float,
) -> None:
    """Hand on the entries of some keys as they change, until it is cancelled.

    take: is handed the present entries, some of them again and again, and each change. look: reads
    what there is now, and returns whether there was something that no watch had reported; it is
    called where the watch was silent for `silent_seconds`.
    """
    while True:
        try:
            async with watching(bucket, keys) as watcher:
                await _hand_on(watcher, take, look, silent_seconds)
        except (nats.errors.Error, Refused, Unanswered, TimeoutError):
            pass  # what was read last stays known
        except Exception:  # the next watch may succeed
            logger.exception("the entries %s of a bucket could not be read", keys)
        await asyncio.sleep(_AGAIN_SECONDS)


async def _hand_on(
    watcher: KeyValue.KeyWatcher,
    take: Callable[[KeyValue.Entry], None],
    look: Callable[[], Awaitable[bool]],
    silent_seconds: float,
) -> None:
    """Hand on what a watch reports, until a look has found more."""
    while True:
        try:
            entry = await watcher.updates(silent_seconds)  # type: ignore[no-untyped-call]
        except nats.errors.TimeoutError:
            if await asyncio.wait_for(look(), _PATIENCE_SECONDS):
                return
        else:
            if entry is not None:
                take(entry)
