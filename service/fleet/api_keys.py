"""The API keys of a fleet, in a single entry of a JetStream bucket; each change replaces it."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import TypeAlias

import nats.errors
from nats.js.errors import APIError, KeyDeletedError, KeyNotFoundError, KeyWrongLastSequenceError
from nats.js.kv import KeyValue
from pydantic import TypeAdapter, ValidationError

from wolfstream.service.access.keys import Key, KeysError
from wolfstream.service.fleet.bucket_watch import (
    RETRY_SECONDS,
    EntryTaken,
    create_entry,
    open_bucket,
    watch_entries,
)
from wolfstream.service.fleet.connection import NatsConnection, NatsRefusal, NatsTimeout
from wolfstream.service.fleet.streams import KEYS_BUCKET

logger = logging.getLogger(__name__)

_KEYS = TypeAdapter(list[Key])
# The key of the entry.
_ENTRY = "keys"
# How long to wait for one answer.
_SECONDS = 10.0
# After so long without a change, the keys are read again: so a revoked key stops working within a
# second, even if the watch was lost with its server.
_SILENT_SECONDS = 0.4
# (revision of the entry, keys); (None, None) for a bucket without keys.
_Revision: TypeAlias = tuple[int | None, list[Key] | None]


class _DamagedKeys(KeysError):
    """The entry does not hold keys."""


class FleetKeys:
    """`access.keys.ApiKeys` in a bucket."""

    def __init__(self, connection: NatsConnection) -> None:
        """Read the keys of the connection's fleet. Raises KeysError."""
        self._nats = connection
        self.name = f"the fleet at {connection.servers}"
        self._current: _Revision = None, None  # as last read
        self._logged_damage = ""  # the last one, to log each only once
        try:
            self._bucket: KeyValue = connection.run(
                open_bucket(connection, KEYS_BUCKET), 2 * RETRY_SECONDS
            )
        except (nats.errors.Error, NatsTimeout) as error:
            raise self._unreadable(error) from None
        self.refresh()

    def _unreadable(self, error: Exception) -> KeysError:
        return KeysError(
            f"the keys of {self.name} cannot be read: {error}; check that its servers are running"
        )

    def refresh(self) -> None:
        """Read the keys again. Raises KeysError."""
        self._current = self._nats.run(self._fetch(), 2 * _SECONDS)

    async def _fetch(self) -> _Revision:
        try:
            return self._keys_in(await self._bucket.get(_ENTRY))
        except (KeyNotFoundError, KeyDeletedError):
            return await self._fetch_from_leader()
        except nats.errors.Error as error:
            raise self._unreadable(error) from None

    async def _fetch_from_leader(self) -> _Revision:
        """Return the keys from the bucket's leader: a missing entry would admit everybody."""
        subject = f"$KV.{KEYS_BUCKET}.{_ENTRY}"
        try:
            message = await self._nats.last_of_leader(f"KV_{KEYS_BUCKET}", subject)
        except (NatsRefusal, NatsTimeout) as error:
            raise self._unreadable(error) from None
        if message is None or not message.body:  # there is no entry, or it was deleted
            return None, None
        return message.sequence, self._parse(message.body)

    def _keys_in(self, entry: KeyValue.Entry) -> _Revision:
        if entry.operation is not None:  # it was deleted
            return None, None
        return entry.revision, self._parse(entry.value or b"")

    def _parse(self, content: bytes) -> list[Key]:
        try:
            return _KEYS.validate_json(content)
        except ValidationError as error:
            raise _DamagedKeys(
                f"the keys of {self.name} are damaged: {error.errors()[0]['msg']}; delete the "
                f"entry {_ENTRY!r} of the bucket {KEYS_BUCKET} and add the keys again"
            ) from None

    def watch(self) -> None:
        """Apply changes from now on; while the keys cannot be read, the last ones stay valid."""
        work = watch_entries(
            self._bucket, _ENTRY, self._take, self._refresh_if_possible, _SILENT_SECONDS
        )
        asyncio.run_coroutine_threadsafe(work, self._nats.loop)

    def _take(self, entry: KeyValue.Entry) -> None:
        """Apply a change of the entry, unless it was read already."""
        if (entry.revision or 0) > (self._current[0] or 0):
            try:
                self._current = self._keys_in(entry)
            except _DamagedKeys as error:
                self._log_damage(error)

    async def _refresh_if_possible(self) -> bool:
        """Read the keys again if they can be read; return whether they have changed."""
        before = self._current[0]
        try:
            latest = await self._fetch()
        except _DamagedKeys as error:
            self._log_damage(error)
            return False
        except KeysError:  # no server answers
            return False
        if latest[0] is None or latest[0] > (before or 0):  # otherwise a copy lags
            self._current = latest
        return self._current[0] != before

    def _log_damage(self, error: _DamagedKeys) -> None:
        if str(error) != self._logged_damage:
            self._logged_damage = str(error)
            logger.error("keys not applied, the previous ones stay in force: error=%s", error)

    def read(self) -> list[Key] | None:
        """Return all keys as last read; None if there is no entry."""
        return self._current[1]

    def version(self) -> int | None:
        """Return the revision of the keys; None without an entry."""
        return self._current[0]

    @contextlib.contextmanager
    def changing(self) -> Iterator[list[Key]]:
        """Yield all keys, and write them after the block.

        Raises KeysError, also if another process has changed them meanwhile.
        """
        self.refresh()
        revision, present = self._current
        keys = list(present or [])
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
        except (APIError, nats.errors.Error, NatsRefusal, NatsTimeout) as error:
            raise KeysError(
                f"the keys of {self.name} could not be written: {error}; see `wolfstream keys list`"
            ) from None
        self.refresh()
