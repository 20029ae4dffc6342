"""The API keys of a fleet, in one entry of a bucket. Each change replaces the whole entry."""

import asyncio
import contextlib
from collections.abc import Iterator

import nats.errors
from nats.js.errors import APIError, KeyDeletedError, KeyNotFoundError, KeyWrongLastSequenceError
from nats.js.kv import KeyValue
from pydantic import TypeAdapter, ValidationError

from service.access.keys import Key, KeysError
from service.fleet.connection import NatsConnection, Unanswered
from service.fleet.streams import KEYS_BUCKET

_KEYS = TypeAdapter(list[Key])
_ENTRY = "keys"
_SECONDS = 10.0
# A server looks at what was read as often.
_EVERY_SECONDS = 0.3


class FleetKeys:
    """`access.keys.ApiKeys` in a bucket. Raises KeysError if it cannot be read."""

    def __init__(self, connection: NatsConnection) -> None:
        self._nats = connection
        self.name = f"the fleet at {connection.servers}"
        self._read: tuple[int | None, list[Key] | None] = None, None
        try:
            self._bucket: KeyValue = connection.run(
                connection.stream.key_value(KEYS_BUCKET), _SECONDS
            )
        except (nats.errors.Error, Unanswered) as error:
            raise self._unreadable(error) from None
        self.look()

    def _unreadable(self, error: Exception) -> KeysError:
        return KeysError(f"the keys of {self.name} cannot be read: {error}; are its servers there?")

    def look(self) -> None:
        """Read the keys again. Raises KeysError."""
        self._read = self._nats.run(self._found(), 2 * _SECONDS)

    async def _found(self) -> tuple[int | None, list[Key] | None]:
        try:
            entry = await self._bucket.get(_ENTRY)
            return entry.revision, _KEYS.validate_json(entry.value or b"")
        except (KeyNotFoundError, KeyDeletedError):
            return None, None
        except nats.errors.Error as error:
            raise self._unreadable(error) from None
        except ValidationError as error:
            raise KeysError(
                f"the keys of {self.name} are damaged: {error.errors()[0]['msg']}; delete the "
                f"entry {_ENTRY!r} of the bucket {KEYS_BUCKET} and add the keys again"
            ) from None

    def watch(self) -> None:
        """Keep reading the keys from now on; if a read fails, the last keys stay valid."""
        asyncio.run_coroutine_threadsafe(self._watch(), self._nats.loop)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            with contextlib.suppress(KeysError):
                self._read = await self._found()

    def read(self) -> list[Key] | None:
        """Return all keys as of the last read; None if none was ever added."""
        return self._read[1]

    def version(self) -> int | None:
        """Return the bucket's revision of the keys."""
        return self._read[0]

    @contextlib.contextmanager
    def changing(self) -> Iterator[list[Key]]:
        """Yield all keys; write them after the block, unless another command changed them."""
        self.look()
        revision, found = self._read
        keys = list(found or [])
        yield keys
        content = _KEYS.dump_json(keys)
        try:
            if revision is None:
                self._nats.run(self._bucket.create(_ENTRY, content), _SECONDS)
            else:
                self._nats.run(self._bucket.update(_ENTRY, content, last=revision), _SECONDS)
        except KeyWrongLastSequenceError:
            raise KeysError(
                f"the keys of {self.name} were changed at the same time; try again"
            ) from None
        except (APIError, nats.errors.Error, Unanswered) as error:
            raise KeysError(
                f"the keys of {self.name} could not be written: {error}; see `wolfstream keys list`"
            ) from None
        self.look()
