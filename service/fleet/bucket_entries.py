"""Opens buckets and creates entries, while several replicas may start at the same time.

Whether an entry exists is asked of the bucket's leader, because copies may lag.
"""

import asyncio
import time

import nats.errors
from nats.js.kv import KeyValue

from wolfstream.service.fleet.connection import NatsConnection, NatsRefusal

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
