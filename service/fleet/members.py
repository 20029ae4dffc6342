"""The living replicas of a fleet, which announce to each other what they lead.

Each announces itself twice a second, on core NATS. The announcements decide who tries to lead a
model; whether one leads is decided by the model's log alone, so nothing here has to be right.
"""

import asyncio
import hashlib
import json
import logging
import operator
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from nats.aio.msg import Msg
from nats.errors import Error

from wolfstream.service.fleet import commit_messages
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.namesakes import Namesakes
from wolfstream.service.fleet.quorum import Quorum, StreamState
from wolfstream.service.storage import snapshot_format
from wolfstream.service.storage.partitions import number_of, whole_of

logger = logging.getLogger(__name__)

_SUBJECT = "wolfstream.replicas"
BEAT_SECONDS, _SILENT_SECONDS = 0.5, 2.0
# Before a replica announces anything, one of the same address would be heard.
_LISTEN_SECONDS = 0.6
# So much is read within a fraction of a second; who has announced more is the better leader.
_FAR_BEHIND_SAMPLES = 1000
# The same where no connection to it could be made: it is likely to be gone, but for one that is
# heard all the same, which cannot be reached from here alone.
_SUSPECTED_SECONDS = 1.0


class Led(NamedTuple):
    """A model that a replica leads.

    Attributes:
        term: where the replica's term began in the log.
        sequence: that is durable.
        number: of the model. One that was made later has a larger number; 0 where a replica of
            another version does not say.
    """

    term: int
    sequence: int
    number: int = 0

    @property
    def since(self) -> tuple[int, int]:
        """What orders claims: terms in one log, and models that had the same name in turn."""
        return self.number, self.term


class Formats(NamedTuple):
    """The versions of formats that a replica writes; it reads those before them, too.

    log: of a log's messages. snapshot: of snapshots. The defaults are those of replicas that do not
    announce theirs.
    """

    log: int = 1
    snapshot: int = 1


WRITTEN = Formats(commit_messages.FORMAT, snapshot_format.VERSION)


class Replica(NamedTuple):
    """What a replica has announced.

    url: at which the others reach it, and by which they know it. ready: whether it takes models.
    leads, follows: models by name; of those that it follows, their sequences. secret: with
    which the others seal their questions for its views; empty of an older version, which serves
    none. formats: that it writes.
    """

    url: str
    ready: bool
    leads: dict[str, Led]
    follows: dict[str, int]
    secret: str = ""
    formats: Formats = Formats()


class Members:
    """The replicas of a fleet that are alive. Its methods may be called on any thread.

    url: of this replica. report: what it announces of itself, called on the connection's loop.
    max_lag_seconds: how long the last announcements count without most NATS servers.
    """

    def __init__(
        self,
        nats: NatsConnection,
        url: str,
        report: Callable[[], Replica],
        max_lag_seconds: float,
    ) -> None:
        self.url = url
        self._max_lag_seconds = max_lag_seconds
        self._nats, self._report = nats, report
        self._heard: dict[str, tuple[float, Replica]] = {}
        self._suspected: dict[str, float] = {}
        self._namesakes, self._secret = Namesakes(url, BEAT_SECONDS, _SILENT_SECONDS), ""
        self._quorum = Quorum(nats, max(max_lag_seconds, _SILENT_SECONDS))
        for work in (self._run(), self._quorum.run()):
            asyncio.run_coroutine_threadsafe(work, nats.loop)

    @property
    def settled(self) -> bool:
        """Whether every other replica has had time to announce itself.

        At first, and again after a time in which this one could have heard of none: it was stopped
        or cut off.
        """
        return time.monotonic() > self._quorum.unbroken_since + 2 * BEAT_SECONDS

    @property
    def lag_seconds(self) -> float:
        """For how long most NATS servers have not been heard; 0 while they are.

        It goes on while this process is stopped, or its server is cut off from the others.
        """
        lag = time.monotonic() - self._quorum.confirmed
        return lag if lag > _SILENT_SECONDS or not self._nats.connected else 0.0

    @property
    def streams(self) -> Mapping[str, StreamState]:
        """What was last heard of each stream."""
        return self._quorum.streams

    @property
    def outdated(self) -> bool:
        """Whether the last announcements are too old to count."""
        return self.lag_seconds > self._max_lag_seconds

    @property
    def silenced(self) -> bool:
        """Whether another replica has this one's address, so that this one announces nothing."""
        return self._namesakes.silenced

    def others(self) -> list[Replica]:
        """Return the other replicas that were heard lately."""
        now = time.monotonic()
        # Nobody is heard without a server, and those who were heard last may still be there.
        away = not (self._nats.connected or self.outdated)
        since = now - self.lag_seconds if away else now
        return [
            replica
            for heard, replica in self._heard.copy().values()
            if heard > since - _SILENT_SECONDS and not self._is_missed(replica.url, heard, now)
        ]

    def _is_missed(self, url: str, heard: float, now: float) -> bool:
        """Return whether a replica is suspected, and was not heard since when it should have."""
        return heard < self._suspected.get(url, 0.0) < now - _SUSPECTED_SECONDS

    def living(self) -> list[Replica]:
        """Return the replicas that were heard lately, this one among them."""
        return [self._own(), *self.others()]

    def _own(self) -> Replica:
        """The replica here, which takes models once it knows the others.

        It takes none while another could not read what it writes.
        """
        own = self._report()
        ready = own.ready and self.settled and not self.silenced
        return own._replace(ready=ready and not not_reading(own.formats, self.others()))

    def leader_of(self, name: str) -> Replica | None:
        """The other replica that says that it leads a model; of several the one since latest."""
        claims = [replica for replica in self.others() if name in replica.leads]
        return max(claims, key=lambda replica: replica.leads[name].since, default=None)

    def suspect(self, url: str) -> None:
        """Take a replica for gone that could not be connected to, unless it is heard again."""
        heard, _ = self._heard.get(url, (0.0, None))
        if self._suspected.get(url, 0.0) < heard:
            self._suspected[url] = time.monotonic()

    def announce(self) -> None:
        """Announce this replica to the others now."""
        asyncio.run_coroutine_threadsafe(self._announce(), self._nats.loop)

    async def _run(self) -> None:
        self._secret = self._report().secret
        await self._nats.client.subscribe(_SUBJECT, cb=self._hear)
        await asyncio.sleep(_LISTEN_SECONDS)
        while True:
            await self._announce()
            await asyncio.sleep(BEAT_SECONDS)

    async def _announce(self) -> None:
        if not self._nats.connected:
            return
        if not self._namesakes.may_announce():
            return
        try:
            heartbeat = json.dumps(self._own()).encode()
            await self._nats.client.publish(_SUBJECT, heartbeat)
        except (Error, RuntimeError) as error:  # the report may change while it is read
            logger.warning("nothing was announced to the other replicas: %s", error)

    async def _hear(self, message: Msg) -> None:
        try:
            replica = _read(json.loads(message.data))
        except (ValueError, TypeError):
            logger.warning("a replica of another version announces what this one cannot read")
            return
        if replica.url != self.url:
            self._heard[replica.url] = time.monotonic(), replica
        elif replica.secret != self._secret:
            self._namesakes.note_heard()


def ranked(name: str, living: Sequence[Replica]) -> list[Replica]:
    """Return the replicas that take models, in the order in which they would lead one.

    Rendezvous hashing: where a replica leaves or comes, no model moves between the others. Those
    that would lead partitions come one after another in the order of their model, so that these
    have as many different leaders as there can be.
    """
    taking = [replica for replica in living if replica.ready]
    whole = whole_of(name)
    if whole is None or not taking:
        return sorted(taking, key=lambda replica: _weight(replica.url, name), reverse=True)
    order, first = ranked(whole, taking), (1 + number_of(name)) % len(taking)
    return order[first:] + order[:first]


def successor(name: str, living: Sequence[Replica]) -> Replica | None:
    """Return the replica that should lead a model without a leader; None if none takes models.

    The first in rank, unless it would have far more to read in the log than another one that
    follows it.
    """
    order = ranked(name, living)
    most = max((replica.follows.get(name, -1) for replica in order), default=-1)
    close = [one for one in order if one.follows.get(name, -1) > most - _FAR_BEHIND_SAMPLES]
    following = [one for one in close if name in one.follows]
    return next(iter(following or order), None)


def stands_by(url: str, name: str, leader: Replica, living: Sequence[Replica]) -> bool:
    """Whether a replica follows a model that another one leads.

    The first in rank does; who follows it already goes on until that one has read about as much.
    """
    order = [one for one in ranked(name, living) if one.url != leader.url]
    if not order or order[0].url == url:
        return bool(order)
    led = leader.leads[name].sequence
    first, follows = order[0].follows, [one.url for one in order if name in one.follows]
    return url in follows and (name not in first or first[name] <= led - _FAR_BEHIND_SAMPLES)


def leaders_of(living: Sequence[Replica]) -> dict[str, Replica]:
    """Return the replica that leads each model that is led; of several the one since latest."""
    leaders = dict[str, Replica]()
    for replica in living:
        for name, led in replica.leads.items():
            if name not in leaders or leaders[name].leads[name].since < led.since:
                leaders[name] = replica
    return leaders


def should_hand_over(name: str, leader: Replica, living: Sequence[Replica]) -> bool:
    """Return whether another replica should lead a model, and knows all of it."""
    led = leader.leads[name].sequence
    first = [one for one in ranked(name, living)[:1] if one.url != leader.url]
    return any(one.follows.get(name, -1) >= led for one in first)


def _read(heartbeat: Any) -> Replica:
    url, ready, leads, follows = heartbeat[:4]
    secret = heartbeat[4] if len(heartbeat) > 4 else ""
    formats = Formats(*heartbeat[5][: len(Formats._fields)]) if len(heartbeat) > 5 else Formats()
    known = {name: Led(*one[:3]) for name, one in leads.items()}
    return Replica(url, ready, known, follows, str(secret), formats)


def not_reading(written: Formats, replicas: Sequence[Replica]) -> list[str]:
    """Return the addresses of replicas that do not read what is written in some formats."""
    return [one.url for one in replicas if any(map(operator.gt, written, one.formats))]


def _weight(url: str, name: str) -> bytes:
    return hashlib.blake2b(f"{url} {name}".encode(), digest_size=8).digest()
