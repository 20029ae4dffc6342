"""The identity of a fleet: a random name in a bucket, which its first replica writes."""

import asyncio
import secrets
import time

from wolfstream.service.errors import StartupError
from wolfstream.service.fleet.bucket_watch import (
    PAUSE_SECONDS,
    RETRY_SECONDS,
    EntryTaken,
    create_entry,
)
from wolfstream.service.fleet.connection import NatsConnection, NatsRefusal, NatsTimeout
from wolfstream.service.fleet.streams import MODELS_BUCKET

_KEY = "fleet"
_SECONDS = 2 * RETRY_SECONDS


def identity(connection: NatsConnection) -> str:
    """Return the unique name of the fleet; create it if there is none. Raises StartupError."""
    try:
        return connection.run(_read_or_create(connection), _SECONDS)
    except (NatsRefusal, NatsTimeout) as error:
        raise StartupError(f"the bucket {MODELS_BUCKET} cannot be used: {error}") from None


async def _read_or_create(connection: NatsConnection) -> str:
    stream, subject = f"KV_{MODELS_BUCKET}", f"$KV.{MODELS_BUCKET}.{_KEY}"
    name, deadline = secrets.token_hex(8), time.monotonic() + RETRY_SECONDS
    while True:
        try:
            if (message := await connection.last_of_leader(stream, subject)) is not None:
                return message.body.decode()
            await create_entry(connection, MODELS_BUCKET, _KEY, name.encode())
        except EntryTaken:  # another replica has created the name meanwhile: read it
            continue
        except (NatsRefusal, NatsTimeout):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            return name
