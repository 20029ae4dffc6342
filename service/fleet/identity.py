"""What identifies a fleet: a random name in a bucket, which its first replica writes."""

import asyncio
import secrets
import time

from wolfstream.service.errors import StartupError
from wolfstream.service.fleet.connection import NatsConnection, Refused, Unanswered
from wolfstream.service.fleet.entries import (
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    EntryTaken,
    create_entry,
)
from wolfstream.service.fleet.streams import MODELS_BUCKET

_KEY = "fleet"
_SECONDS = 2 * PATIENCE_SECONDS


def identity(connection: NatsConnection) -> str:
    """Return the name that only this fleet has. Raises StartupError."""
    try:
        return connection.run(_read_or_made(connection), _SECONDS)
    except (Refused, Unanswered) as error:
        raise StartupError(f"the bucket {MODELS_BUCKET} cannot be used: {error}") from None


async def _read_or_made(connection: NatsConnection) -> str:
    stream, subject = f"KV_{MODELS_BUCKET}", f"$KV.{MODELS_BUCKET}.{_KEY}"
    made, deadline = secrets.token_hex(8), time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            if (written := await connection.last_of_leader(stream, subject)) is not None:
                return written.body.decode()
            await create_entry(connection, MODELS_BUCKET, _KEY, made.encode())
        except EntryTaken:  # another replica was quicker
            continue
        except (Refused, Unanswered):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            return made
