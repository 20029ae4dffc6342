"""What identifies a fleet: a random name in a bucket, which its first replica writes."""

import secrets

import nats.errors
from nats.js.errors import APIError, KeyNotFoundError, KeyWrongLastSequenceError

from wolfstream.service.errors import StartupError
from wolfstream.service.fleet.connection import NatsConnection, Refused, Unanswered
from wolfstream.service.fleet.streams import MODELS_BUCKET

_KEY = "fleet"
_SECONDS = 15.0


def identity(connection: NatsConnection) -> str:
    """Return the name that only this fleet has. Raises StartupError."""
    try:
        return connection.run(_found_or_made(connection), _SECONDS)
    except (nats.errors.Error, APIError, Refused, Unanswered) as error:
        raise StartupError(f"the bucket {MODELS_BUCKET} cannot be used: {error}") from None


async def _found_or_made(connection: NatsConnection) -> str:
    bucket = await connection.stream.key_value(MODELS_BUCKET)
    try:
        return ((await bucket.get(_KEY)).value or b"").decode()
    except KeyNotFoundError:
        made = secrets.token_hex(8)
    try:
        await bucket.create(_KEY, made.encode())
    except KeyWrongLastSequenceError:  # another replica was quicker
        stream, subject = f"KV_{MODELS_BUCKET}", f"$KV.{MODELS_BUCKET}.{_KEY}"
        found = await connection.last_of_leader(stream, subject)
        return made if found is None else found.body.decode()
    return made
