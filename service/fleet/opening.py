"""Opens the storage of a replica: streams that all replicas share, and a directory of its own."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from wolfstream.service.fleet.api_keys import FleetKeys
from wolfstream.service.fleet.connecting import connected_client
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.identity import identity
from wolfstream.service.fleet.jetstream_catalogue import JetStreamCatalogue
from wolfstream.service.fleet.jetstream_journal import JetStreamJournal
from wolfstream.service.fleet.jetstream_snapshots import JetStreamSnapshots
from wolfstream.service.fleet.login import NOBODY, Login
from wolfstream.service.fleet.streams import KEYS_BUCKET, make_bucket, make_streams
from wolfstream.service.storage.data_directory import high_water_path, replays_path
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.replay_marks import ReplayMarks
from wolfstream.service.storage.replica_directory import remember_fleet

_SECONDS = 60.0
# A replica loads models again and again, and is killed from outside as a matter of course.
_ENDED_REPLAYS = 3


def connect(
    servers: Sequence[str], log_bytes: int, state_bytes: int, login: Login = NOBODY
) -> NatsConnection:
    """Connect to servers and create missing streams. Raises StartupError.

    log_bytes, state_bytes: see `streams.make_streams`. login: who connects.
    """
    nats = NatsConnection(servers, "wolfstream", partial(connected_client, login=login))
    try:
        make_streams(nats, log_bytes, state_bytes)
    except BaseException:
        nats.close()
        raise
    return nats


class Fleet(NamedTuple):
    """A replica's access to its fleet. storage: closing it closes the connection."""

    nats: NatsConnection
    journal: JetStreamJournal
    catalogue: JetStreamCatalogue
    high_water: HighWater
    snapshots: JetStreamSnapshots
    storage: Storage

    def note_acknowledged(self, model: int, sequence: int) -> None:
        """Record a sequence that a leader has acknowledged: the log must not end before it."""
        if model:
            self.high_water.note(model, sequence)


def open_fleet(nats: NatsConnection, data: Path, snapshots_kept: int = 4) -> Fleet:
    """Return the fleet at a connection. Raises StartupError.

    data: the replica's own directory, which may be empty; this process locks it.
    """
    remember_fleet(data, identity(nats))
    high_water = HighWater(high_water_path(data))
    replays = ReplayMarks(replays_path(data), most=_ENDED_REPLAYS)
    journal = JetStreamJournal(nats, high_water, replays)
    catalogue = JetStreamCatalogue(nats, journal)
    snapshots = JetStreamSnapshots(nats, snapshots_kept)
    storage = Storage(journal, catalogue, snapshots)
    return Fleet(nats, journal, catalogue, high_water, snapshots, storage)


@contextmanager
def keys_at(servers: Sequence[str], login: Login = NOBODY) -> Iterator[FleetKeys]:
    """Return the API keys of the fleet at some NATS servers. Raises StartupError, KeysError."""
    nats = NatsConnection(servers, "wolfstream keys", partial(connected_client, login=login))
    try:
        nats.run(make_bucket(nats, KEYS_BUCKET), _SECONDS)
        yield FleetKeys(nats)
    finally:
        nats.close()
