"""The API keys of a fleet, in one entry of a bucket. Each change replaces the whole entry."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TypeAlias

import nats.errors
from nats.js.errors import APIError, KeyDeletedError, KeyNotFoundError, KeyWrongLastSequenceError
from nats.js.kv import KeyValue
from pydantic import TypeAdapter, ValidationError

from wolfstream.service.access.keys import Key, KeysError
from wolfstream.service.fleet.bucket_watch import follow
from wolfstream.service.fleet.connection import NatsConnection, Refused, Unanswered
from wolfstream.service.fleet.entries import PATIENCE_SECONDS, EntryTaken, create_entry, open_bucket
from wolfstream.service.fleet.streams import KEYS_BUCKET

_KEYS = TypeAdapter(list[Key])
_ENTRY = "keys"
_SECONDS = 10.0
# A revoked key stops within a second, on a replica whose watch was lost with a server, too.
_LOOK_SECONDS = 0.4
# The bucket's revision of all keys, and these; None, None of a bucket without any.
_Read: TypeAlias = tuple[int | None, list[Key] | None]


class FleetKeys:
    """`access.keys.ApiKeys` in a bucket. Raises KeysError if it cannot be read."""

    def __init__(self, connection: NatsConnection) -> None:
        self._nats = connection
        self.name = f"the fleet at {connection.servers}"
        self._read: _Read = None, None
        try:
            self._bucket: KeyValue = connection.run(
                open_bucket(connection, KEYS_BUCKET), 2 * PATIENCE_SECONDS
            )
        except (nats.errors.Error, Unanswered) as error:
            raise self._unreadable(error) from None
        self.look()

    def _unreadable(self, error: Exception) -> KeysError:
        return KeysError(f"the keys of {self.name} cannot be read: {error}; are its servers there?")

    def look(self) -> None:
        """Read the keys again. Raises KeysError."""
        self._read = self._nats.run(self._found(), 2 * _SECONDS)

    async def _found(self) -> _Read:
        try:
            return self._keys_in(await self._bucket.get(_ENTRY))
        except (KeyNotFoundError, KeyDeletedError):
            return await self._found_by_leader()
        except nats.errors.Error as error:
            raise self._unreadable(error) from None

    async def _found_by_leader(self) -> _Read:
        """Ask the bucket's leader: without keys everybody is admitted, and a copy may lag."""
        subject = f"$KV.{KEYS_BUCKET}.{_ENTRY}"
        try:
            found = await self._nats.last_of_leader(f"KV_{KEYS_BUCKET}", subject)
        except (Refused, Unanswered) as error:
            raise self._unreadable(error) from None
        if found is None or not found.body:  # it was deleted
            return None, None
        return found.sequence, self._parsed(found.body)

    def _keys_in(self, entry: KeyValue.Entry) -> _Read:
        if entry.operation is not None:  # it was deleted
            return None, None
        return entry.revision, self._parsed(entry.value or b"")

    def _parsed(self, content: bytes) -> list[Key]:
        try:
            return _KEYS.validate_json(content)
        except ValidationError as error:
            raise KeysError(
                f"the keys of {self.name} are damaged: {error.errors()[0]['msg']}; delete the "
                f"entry {_ENTRY!r} of the bucket {KEYS_BUCKET} and add the keys again"
            ) from None

    def watch(self) -> None:
        """Take each change of the keys from now on; if it cannot be read, the last stay valid."""
        work = follow(self._bucket, _ENTRY, self._take, self._is_behind, _LOOK_SECONDS)
        asyncio.run_coroutine_threadsafe(work, self._nats.loop)

    def _take(self, entry: KeyValue.Entry) -> None:
        if (entry.revision or 0) > (self._read[0] or 0):
            with contextlib.suppress(KeysError):
                self._read = self._keys_in(entry)

    async def _is_behind(self) -> bool:
        """Read the keys, and return whether they have changed."""
        before, found = self._read[0], self._read
        with contextlib.suppress(KeysError):
            found = await self._found()
        if found[0] is None or found[0] > (before or 0):  # else a copy lags behind
            self._read = found
        return self._read[0] != before

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
                self._nats.run(create_entry(self._nats, KEYS_BUCKET, _ENTRY, content), _SECONDS)
            else:
                self._nats.run(self._bucket.update(_ENTRY, content, last=revision), _SECONDS)
        except (KeyWrongLastSequenceError, EntryTaken):
            raise KeysError(
                f"the keys of {self.name} were changed at the same time; try again"
            ) from None
        except (APIError, nats.errors.Error, Refused, Unanswered) as error:
            raise KeysError(
                f"the keys of {self.name} could not be written: {error}; see `wolfstream keys list`"
            ) from None
        self.look()
