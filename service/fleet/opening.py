"""Opens a replica's storage: streams that all replicas share, and the replica's own directory.

A fleet has an identity, a random name that its first replica writes to a bucket.
"""

import asyncio
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from wolfstream.service.errors import StartupError
from wolfstream.service.fleet.api_keys import FleetKeys
from wolfstream.service.fleet.bucket_watch import (
    PAUSE_SECONDS,
    RETRY_SECONDS,
    EntryTaken,
    create_entry,
)
from wolfstream.service.fleet.connecting import NOBODY, Login, connected_client
from wolfstream.service.fleet.connection import NatsConnection, NatsRefusal, NatsTimeout
from wolfstream.service.fleet.jetstream_catalogue import JetStreamCatalogue
from wolfstream.service.fleet.jetstream_journal import JetStreamJournal
from wolfstream.service.fleet.jetstream_snapshots import JetStreamSnapshots
from wolfstream.service.fleet.streams import KEYS_BUCKET, MODELS_BUCKET, make_bucket, make_streams
from wolfstream.service.storage.crash_marks import ReplayMarks
from wolfstream.service.storage.data_directory import high_water_path, replays_path
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.replica_directory import assign_to_fleet

_IDENTITY_KEY = "fleet"
_IDENTITY_SECONDS = 2 * RETRY_SECONDS


def identity(connection: NatsConnection) -> str:
    """Return the unique name of the fleet; create it if there is none. Raises StartupError."""
    try:
        return connection.run(_read_or_create(connection), _IDENTITY_SECONDS)
    except (NatsRefusal, NatsTimeout) as error:
        raise StartupError(f"the bucket {MODELS_BUCKET} cannot be used: {error}") from None


async def _read_or_create(connection: NatsConnection) -> str:
    stream, subject = f"KV_{MODELS_BUCKET}", f"$KV.{MODELS_BUCKET}.{_IDENTITY_KEY}"
    name, deadline = secrets.token_hex(8), time.monotonic() + RETRY_SECONDS
    while True:
        try:
            if (message := await connection.last_of_leader(stream, subject)) is not None:
                return message.body.decode()
            await create_entry(connection, MODELS_BUCKET, _IDENTITY_KEY, name.encode())
        except EntryTaken:  # another replica has created the name meanwhile: read it
            continue
        except (NatsRefusal, NatsTimeout):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            return name


_SECONDS = 60.0
# One more than for a single server: a replica loads models often, and orchestrators routinely kill
# it.
_MAX_CRASHES = 3


def connect(
    servers: Sequence[str], log_bytes: int, state_bytes: int, login: Login = NOBODY
) -> NatsConnection:
    """Connect to NATS servers, and create the streams that are missing.

    Args:
        servers: addresses, such as nats://host:4222.
        log_bytes: see `streams.make_streams`.
        state_bytes: see `streams.make_streams`.
        login: the credentials.

    Raises StartupError.
    """
    nats = NatsConnection(servers, "wolfstream", partial(connected_client, login=login))
    try:
        make_streams(nats, log_bytes, state_bytes)
    except BaseException:
        nats.close()
        raise
    return nats


class Fleet(NamedTuple):
    """A replica's access to its fleet."""

    nats: NatsConnection
    journal: JetStreamJournal
    catalogue: JetStreamCatalogue
    high_water: HighWater  # this replica's own
    snapshots: JetStreamSnapshots
    storage: Storage  # closing it closes the connection

    def mark_acknowledged(self, model: int, sequence: int) -> None:
        """Record that a leader has acknowledged a sequence: the log must not end before it.

        Args:
            model: number of the model; 0 if the leader did not say.
            sequence: the acknowledged sequence.
        """
        if model:
            self.high_water.mark(model, sequence)


def open_fleet(nats: NatsConnection, data: Path, snapshots_kept: int = 4) -> Fleet:
    """Open the storage of a fleet.

    Args:
        nats: the connection.
        data: the replica's own directory, locked by this process; it may be empty.
        snapshots_kept: number of snapshots of each model that are kept.

    Raises StartupError.
    """
    assign_to_fleet(data, identity(nats))
    high_water = HighWater(high_water_path(data))
    replays = ReplayMarks(replays_path(data), max_crashes=_MAX_CRASHES)
    journal = JetStreamJournal(nats, high_water, replays)
    catalogue = JetStreamCatalogue(nats, journal)
    snapshots = JetStreamSnapshots(nats, snapshots_kept)
    storage = Storage(journal, catalogue, snapshots)
    return Fleet(nats, journal, catalogue, high_water, snapshots, storage)


@contextmanager
def keys_at(servers: Sequence[str], login: Login = NOBODY) -> Iterator[FleetKeys]:
    """Connect to NATS servers within a block; yield the API keys of their fleet.

    Raises StartupError, KeysError.
    """
    nats = NatsConnection(servers, "wolfstream keys", partial(connected_client, login=login))
    try:
        nats.run(make_bucket(nats, KEYS_BUCKET), _SECONDS)
        yield FleetKeys(nats)
    finally:
        nats.close()
