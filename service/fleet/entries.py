"""Buckets just after they were made, while replicas start at the same time: all first steps.

Whether there is an entry is asked of a bucket's leader, because copies may lag.
"""

import asyncio
import time

import nats.errors
from nats.js.kv import KeyValue

from wolfstream.service.fleet.connection import NatsConnection, Refused

# The error of a server that knows a later message of the subject.
_ANOTHER_REVISION = 10071
# Servers that have just been started choose leaders for some seconds.
PATIENCE_SECONDS, PAUSE_SECONDS = 30.0, 0.5


class EntryTaken(Exception):
    """The bucket has an entry of this key."""


async def create_entry(connection: NatsConnection, bucket: str, key: str, content: bytes) -> int:
    """Write the entry of a key that has none, or none any more; return its revision.

    Raises EntryTaken, Refused, Unanswered.
    """
    subject = f"$KV.{bucket}.{key}"
    last = await connection.last_of_leader(f"KV_{bucket}", subject)
    if last is not None and last.body:  # one without content says that it was deleted
        raise EntryTaken
    expected = str(0 if last is None else last.sequence)
    try:
        stored = await connection.ask(
            subject, content, {"Nats-Expected-Last-Subject-Sequence": expected}
        )
    except Refused as error:
        if error.code == _ANOTHER_REVISION:
            raise EntryTaken from None
        raise
    return int(stored["seq"])


async def open_bucket(connection: NatsConnection, bucket: str) -> KeyValue:
    """Return a bucket that exists, once its leader answers. Raises nats.errors.Error."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return await connection.stream.key_value(bucket)
        except nats.errors.Error:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(PAUSE_SECONDS)
