"""The living replicas of a fleet, which announce to each other which models they lead.

Each announces itself twice a second, on core NATS. The announcements determine which replica tries
to lead a model. Only the model's log decides which one leads it, so nothing here needs to be exact.
"""

import asyncio
import hashlib
import json
import logging
import operator
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from nats.aio.msg import Msg
from nats.errors import Error

from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.cluster.quorum import Quorum, StreamState
from wolfstream.service.fleet import commit_messages
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.storage import snapshot_format

logger = logging.getLogger(__name__)


class Namesakes:
    """Decides whether a replica with a shared address is silent. Used on the connection's loop."""

    def __init__(self, url: str, beat_seconds: float, silent_seconds: float) -> None:
        """Begin with nothing heard.

        Args:
            url: the address of this replica.
            beat_seconds: time between two announcements of a replica.
            silent_seconds: time without announcements after which a replica counts as gone.
        """
        self._url, self._beat, self._silent = url, beat_seconds, silent_seconds
        # All times are of boot_seconds().
        self._heard_at = self._silent_until = self._announced_at = -float("inf")
        # When this replica began to announce itself without breaks of `silent_seconds`.
        self._announces_since = boot_seconds()

    @property
    def silenced(self) -> bool:
        """Whether this replica is silent because another one has its address; on any thread."""
        return boot_seconds() < self._silent_until

    def may_announce(self) -> bool:
        """Return whether this replica may announce itself; if so, record that it does so now."""
        if self.silenced:
            return False
        now = boot_seconds()
        if now > self._announced_at + self._silent:  # this replica counted as gone
            self._announces_since = now
        self._announced_at = now
        return True

    def record_heard(self) -> None:
        """Record that another replica with the address was heard; become silent if it was first."""
        now = boot_seconds()
        if now > self._heard_at + self._silent:
            logger.error(
                "another replica has the same address, and the others cannot tell them apart: "
                "url=%s. Give each replica its own address with --advertise",
                self._url,
            )
        self._heard_at = now
        if self.silenced or now < self._announces_since + 2 * self._beat:
            # The time is random, so that one of several replicas that started together tries first.
            self._silent_until = now + self._silent * random.uniform(1, 3)


_SUBJECT = "wolfstream.replicas"
BEAT_SECONDS, _SILENT_SECONDS = 0.5, 2.0
# How long to listen before the first announcement, which is long enough to hear another replica
# with the same address.
_LISTEN_SECONDS = 0.6
# A replica that is further behind than this is not the best leader. Up to this, it catches up
# within a fraction of a second.
_FAR_BEHIND_SAMPLES = 1000
# After a failed connection, a replica counts as gone after this time, unless it is heard again:
# then it is alive, and only the network between the two fails.
_SUSPECTED_SECONDS = 1.0


class Leadership(NamedTuple):
    """A replica's claim that it leads a model."""

    term: int  # where the replica's term began in the log
    sequence: int  # the model is durable up to it
    number: int  # the model's number

    @property
    def since(self) -> tuple[int, int]:
        """A key that orders claims to a name by model, which may differ over time, then by term."""
        return self.number, self.term


class Formats(NamedTuple):
    """The versions of formats that a replica writes; it also reads all earlier ones."""

    log: int
    snapshot: int


WRITTEN = Formats(commit_messages.FORMAT, snapshot_format.VERSION)


class Replica(NamedTuple):
    """What a replica announces."""

    url: str  # the address at which the others reach it, which is also its name
    ready: bool  # whether it takes over models
    leads: dict[str, Leadership]  # model -> claim to lead it
    follows: dict[str, int]  # model for which it is a standby -> sequence that it has replayed
    secret: str = ""  # seals requests for its views; empty if it serves no views
    formats: Formats = WRITTEN  # the formats that it writes


class Members:
    """The living replicas of a fleet. Its methods may be called on any thread.

    Attributes:
        url: address of this replica.
        outside: why this replica has not joined the others; "" once it has, and while it listens.
    """

    def __init__(
        self,
        nats: NatsConnection,
        url: str,
        report: Callable[[], Replica],
        max_lag_seconds: float,
    ) -> None:
        """Start to listen and, after a moment, to announce this replica.

        Args:
            nats: the connection.
            url: the address of this replica.
            report: returns this replica's announcement; called on the connection's loop.
            max_lag_seconds: how long announcements stay valid without a majority of the NATS
                servers.
        """
        self.url = url
        self._max_lag_seconds = max_lag_seconds
        self._nats, self._report = nats, report
        # All times are of boot_seconds().
        self._heard: dict[str, tuple[float, Replica]] = {}  # url -> (when, announcement)
        self._suspected: dict[str, float] = {}  # url -> when a connection to it failed
        self._namesakes, self._secret = Namesakes(url, BEAT_SECONDS, _SILENT_SECONDS), ""
        self.outside = ""
        self._quorum = Quorum(nats, max(max_lag_seconds, _SILENT_SECONDS))
        for work in (self._run(), self._quorum.run()):
            asyncio.run_coroutine_threadsafe(work, nats.loop)

    @property
    def settled(self) -> bool:
        """Whether every other replica has had time to announce itself.

        That takes a moment after the start, and after this replica was suspended or cut off.
        """
        return boot_seconds() > self._quorum.unbroken_since + 2 * BEAT_SECONDS

    @property
    def lag_seconds(self) -> float:
        """Seconds since a majority of the NATS servers was heard; 0 while it is heard.

        They also count while this process is suspended, or its server is cut off from the others.
        """
        lag = boot_seconds() - self._quorum.confirmed
        return lag if lag > _SILENT_SECONDS or not self._nats.connected else 0.0

    @property
    def streams(self) -> Mapping[str, StreamState]:
        """Stream -> its last known state."""
        return self._quorum.streams

    @property
    def outdated(self) -> bool:
        """Whether the last announcements are too old to be valid."""
        return self.lag_seconds > self._max_lag_seconds

    @property
    def silenced(self) -> bool:
        """Whether this replica is silent, because another one has the same address."""
        return self._namesakes.silenced

    def others(self) -> list[Replica]:
        """Return the other replicas that were heard lately."""
        now = boot_seconds()
        # Without a server nobody can be heard, so replicas count while announcements are valid.
        disconnected = not (self._nats.connected or self.outdated)
        since = now - self.lag_seconds if disconnected else now
        return [
            replica
            for heard, replica in self._heard.copy().values()
            if heard > since - _SILENT_SECONDS and not self._is_gone(replica.url, heard, now)
        ]

    def _is_gone(self, url: str, heard: float, now: float) -> bool:
        """Return whether a replica was suspected some time ago, and has not been heard since."""
        return heard < self._suspected.get(url, 0.0) < now - _SUSPECTED_SECONDS

    def living(self) -> list[Replica]:
        """Return the replicas that were heard lately, and this one."""
        return [self._own(), *self.others()]

    def _own(self) -> Replica:
        """Return this replica's announcement.

        It takes models only once it knows the others, and if all of them can read what it writes.
        """
        report = self._report()
        ready = report.ready and self.settled and not self.silenced and not self.outside
        return report._replace(ready=ready and not not_reading(report.formats, self.others()))

    def find_leader(self, name: str) -> Replica | None:
        """Return the other replica that claims to lead a model; the latest if there are several."""
        claims = [replica for replica in self.others() if name in replica.leads]
        return max(claims, key=lambda replica: replica.leads[name].since, default=None)

    def suspect(self, url: str) -> None:
        """Record a failed connection to a replica: unless it is heard again, it counts as gone."""
        heard, _ = self._heard.get(url, (0.0, None))
        if self._suspected.get(url, 0.0) < heard:
            self._suspected[url] = boot_seconds()

    def announce(self) -> None:
        """Announce this replica to the others now."""
        asyncio.run_coroutine_threadsafe(self._announce(), self._nats.loop)

    async def _run(self) -> None:
        self._secret = self._report().secret
        await self._nats.client.subscribe(_SUBJECT, cb=self._hear)
        await asyncio.sleep(_LISTEN_SECONDS)
        while others := unreadable(self._report().formats, self.others()):
            if not self.outside:
                self.outside = (
                    f"the replicas of the fleet ({', '.join(others)}) write formats of a later "
                    "version, which this one cannot read: start that version"
                )
                logger.error("fleet not joined: reason=%s", self.outside)
            await asyncio.sleep(BEAT_SECONDS)
        self.outside = ""
        while True:
            await self._announce()
            await asyncio.sleep(BEAT_SECONDS)

    async def _announce(self) -> None:
        if not self._nats.connected or self.outside:
            return
        if not self._namesakes.may_announce():
            return
        try:
            heartbeat = json.dumps(self._own()).encode()
            await self._nats.client.publish(_SUBJECT, heartbeat)
        except (Error, RuntimeError) as error:  # a dict of the report may change during dumps
            logger.warning("announcement to the other replicas failed: error=%s", error)

    async def _hear(self, message: Msg) -> None:
        try:
            replica = _read(json.loads(message.data))
        except (ValueError, TypeError):
            logger.warning("announcement of a replica of another version ignored")
            return
        if replica.url != self.url:
            self._heard[replica.url] = boot_seconds(), replica
        elif replica.secret != self._secret:
            self._namesakes.record_heard()


def ranked(name: str, living: Sequence[Replica]) -> list[Replica]:
    """Return the replicas that take models, in the order in which they would lead a model.

    This is rendezvous hashing: when a replica leaves or joins, no model moves between the others.
    """
    taking = [replica for replica in living if replica.ready]
    return sorted(taking, key=lambda replica: _weight(replica.url, name), reverse=True)


def successor(name: str, living: Sequence[Replica]) -> Replica | None:
    """Return the replica that should lead a model without a leader; None if none takes models.

    It is the highest-ranked standby that is not far behind the furthest one; without standbys, the
    highest-ranked replica.
    """
    order = ranked(name, living)
    furthest = max((replica.follows.get(name, -1) for replica in order), default=-1)
    standbys = [
        replica
        for replica in order
        if replica.follows.get(name, -1) > furthest - _FAR_BEHIND_SAMPLES
        and name in replica.follows
    ]
    return next(iter(standbys or order), None)


def stands_by(url: str, name: str, leader: Replica, living: Sequence[Replica]) -> bool:
    """Return whether a replica should be a standby of a model that another one leads.

    The highest-ranked one should. Other standbys remain until it has nearly caught up.
    """
    order = [replica for replica in ranked(name, living) if replica.url != leader.url]
    if not order or order[0].url == url:
        return bool(order)
    leader_sequence = leader.leads[name].sequence
    first, standbys = (
        order[0].follows,
        [replica.url for replica in order if name in replica.follows],
    )
    is_first_behind = name not in first or first[name] <= leader_sequence - _FAR_BEHIND_SAMPLES
    return url in standbys and is_first_behind


def leaders_by_model(living: Sequence[Replica]) -> dict[str, Replica]:
    """Return model -> its leader; the latest if several replicas claim to lead it."""
    leaders = dict[str, Replica]()
    for replica in living:
        for name, claim in replica.leads.items():
            if name not in leaders or leaders[name].leads[name].since < claim.since:
                leaders[name] = replica
    return leaders


def should_hand_over(name: str, leader: Replica, living: Sequence[Replica]) -> bool:
    """Return whether another replica should lead a model, and has replayed its whole log."""
    sequence = leader.leads[name].sequence
    first = [replica for replica in ranked(name, living)[:1] if replica.url != leader.url]
    return any(replica.follows.get(name, -1) >= sequence for replica in first)


def _read(heartbeat: Any) -> Replica:
    """Return the replica in a decoded announcement; later versions may have more fields."""
    url, ready, leads, follows, secret, formats = heartbeat[:6]
    claims = {name: Leadership(*fields[:3]) for name, fields in leads.items()}
    return Replica(url, ready, claims, follows, str(secret), Formats(*formats[:2]))


def not_reading(written: Formats, replicas: Sequence[Replica]) -> list[str]:
    """Return the addresses of replicas that cannot read some formats."""
    return [replica.url for replica in replicas if any(map(operator.gt, written, replica.formats))]


def unreadable(read: Formats, replicas: Sequence[Replica]) -> list[str]:
    """Return the addresses of replicas if all of them write what this one cannot read, else none.

    While a fleet is upgraded, some replicas write only what all of them can read.
    """
    later = [replica.url for replica in replicas if any(map(operator.gt, replica.formats, read))]
    return sorted(later) if len(later) == len(replicas) else []


def _weight(url: str, name: str) -> bytes:
    return hashlib.blake2b(f"{url} {name}".encode(), digest_size=8).digest()
