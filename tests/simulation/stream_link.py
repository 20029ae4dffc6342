"""The way between replicas and the stand-in for JetStream, on the virtual clock.

Messages between one client and the server keep their order, as on a connection. Faults: a message
or its answer is lost, an append that was sent long ago arrives, a server refuses for now, a copy
lags behind. A replica that is cut off loses its connection after some seconds, and gets another one
once it is no longer; what it has sent meanwhile may arrive then.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from tests.service.jetstream.client import StandInClient
from tests.service.jetstream.consumer import Consumer
from tests.service.jetstream.network import Fate, Kind, Late
from tests.service.jetstream.packet import Packet
from tests.service.jetstream.server import Push, Server
from tests.service.jetstream.store import StoredMessage
from tests.service.jetstream.stream import Stream
from tests.service.jetstream.wire import Answer, Peer, Wire
from tests.simulation import kernel as kernels
from tests.simulation.kernel import Group, Kernel
from tests.simulation.network import Network
from wolfstream.service.errors import StartupError
from wolfstream.service.fleet.connection import NatsConnection

# How the servers of the stream are called where somebody is cut off from them.
STREAM = "stream"
_ANNOUNCEMENTS = "wolfstream.replicas"
# After two pings without an answer a client gives a connection up; then it tries again and again.
_GIVES_UP_SECONDS, _AGAIN_SECONDS = 4.0, 0.5
_CONNECT_SECONDS = 20.0
_USUAL_SECONDS = 0.0005
# How late a message arrives at most that was sent on an earlier connection.
_STRAY_SECONDS = 30.0
_BATCH_SECONDS = 10.0
# Refusals that mean nothing but "not now": no leader, and an end that is still being decided.
_NOT_NOW = ((10008, 503), (10164, 400))


@dataclass
class StreamFaults:
    """How likely a message has a fate.

    lost, unheard: it, or its answer, is lost. stray: it is lost, and an append arrives much later.
    refused, unserved: for now. behind: a copy answers a read that lacks some changes.
    """

    lost: float = 0.0
    unheard: float = 0.0
    stray: float = 0.0
    refused: float = 0.0
    unserved: float = 0.0
    behind: float = 0.0
    slow: float = 0.0


class Archived(NamedTuple):
    """A message that was stored, which may be purged by now: by whom, when, and in which stream."""

    stream: str
    message: StoredMessage
    writer: str
    at: float


class SimulatedWire(Wire):
    """The wire of a simulation. archive: everything that the streams have ever stored."""

    def __init__(self, kernel: Kernel, network: Network, seed: object) -> None:
        super().__init__(Server(n_servers=3, clock=self._clock))
        self._lock: Any = contextlib.nullcontext()  # nothing here is a switch point
        self.faults, self.counts = StreamFaults(), Counter[str]()
        self.archive = list[Archived]()
        # Processes whose announcements nobody hears, and those that hear none.
        self.mute, self.deaf = set[str](), set[str]()
        self._kernel, self._sites = kernel, network
        self._random = Random(f"{seed} stream")
        self._groups: dict[str, Group] = {}
        # When the last message of each client arrives, there and back.
        self._there: dict[str, float] = {}
        self._back: dict[str, float] = {}
        self._sender = ""
        self._keep_archive()
        self._forget_batches()

    def _clock(self) -> int:
        return int((kernels.EPOCH + self._kernel.now) * 1e9)

    def _keep_archive(self) -> None:
        store_one, wire = Stream.store_one, self

        def stored(self: Stream, packet: Packet, headers: Any, change: Any) -> None:
            store_one(self, packet, headers, change)
            message = StoredMessage(
                self.store.last, packet.subject, packet.headers, packet.body, self.store.last_time
            )
            wire.archive.append(Archived(self.name, message, wire._sender, wire._kernel.now))

        Stream.store_one = stored  # type: ignore[method-assign]

    def _forget_batches(self) -> None:
        self.abandon_batches()
        self._kernel.call_later(_BATCH_SECONDS, self._forget_batches)

    def client_of(self, group: Group, name: str) -> StandInClient:
        """Return a client of a process. name: unlike that of every other client."""
        self._groups[name] = group
        return StandInClient(self, name)

    def ended(self, group: Group) -> None:
        """Forget the subscriptions of a process that has ended."""
        for name, of in self._groups.items():
            if of is group:
                self.server.disconnect(name)

    def cut_off(self, group: Group) -> None:
        """Let a process lose its connection if it is still cut off in some seconds."""
        self._kernel.call_later(
            _GIVES_UP_SECONDS * self._random.uniform(0.5, 1.5), lambda: self._give_up(group)
        )

    def _give_up(self, group: Group) -> None:
        if self._is_cut(group) and not group.dead:
            for peer in self._peers_of(group):
                self.counts["disconnected"] += 1
                peer.loop.call_soon_threadsafe(peer.disconnect)
            self._kernel.call_later(_AGAIN_SECONDS, lambda: self._try_again(group))

    def _try_again(self, group: Group) -> None:
        if group.dead:
            return
        if self._is_cut(group):
            self._kernel.call_later(_AGAIN_SECONDS, lambda: self._try_again(group))
            return
        for peer in self._peers_of(group):
            peer.loop.call_soon_threadsafe(_connect_again, peer)

    def _peers_of(self, group: Group) -> list[StandInClient]:
        found = [peer for name, peer in self._peers.items() if self._groups[name] is group]
        return [peer for peer in found if isinstance(peer, StandInClient) and peer.is_open()]

    def _is_cut(self, group: Group) -> bool:
        return self._sites.is_cut(group.name, STREAM)

    # Messages

    def send(self, peer: Peer, packet: Packet, answer: Answer) -> Fate:
        """Send a packet; its answer comes later, or never."""
        kind = self._kind(packet)
        self._kernel.note("send", peer.name, kind.name, packet.subject, len(packet.body))
        if self._is_cut(self._groups[peer.name]):
            self._send_cut_off(peer, packet, answer)
        elif self._happens("lost", kind) or self._is_mute(peer, kind):
            pass
        elif kind in (Kind.APPEND, Kind.READ, Kind.CALL) and self._happens("unserved", kind):
            self._answer(peer, answer, self.server.unserved(packet))
        elif kind is not Kind.PUBLISH and self._happens("stray", kind):
            self._later(self._random.uniform(0, _STRAY_SECONDS), peer, packet, _ignore)
        else:
            there = self._arrival(self._there, peer.name)
            self._kernel.call_at(there, lambda: self._arrive(peer, packet, answer, kind))
        return Late()

    def _is_mute(self, peer: Peer, kind: Kind) -> bool:
        return kind is Kind.PUBLISH and self._groups[peer.name].name in self.mute

    def _happens(self, fault: str, kind: Kind) -> bool:
        happens: bool = self._random.random() < getattr(self.faults, fault)
        if happens:
            self.counts[f"{fault} {kind.name.lower()}"] += 1
        return happens

    def _send_cut_off(self, peer: Peer, packet: Packet, answer: Answer) -> None:
        """Lose a packet, or let it arrive once its sender is not cut off any more."""
        if self._random.random() < 0.5:
            self._sites.deliver(
                self._groups[peer.name].name,
                STREAM,
                self._kernel.now,
                lambda: self._deliver_for(peer, packet, answer),
            )

    def _later(self, seconds: float, peer: Peer, packet: Packet, answer: Answer) -> None:
        self._kernel.call_later(seconds, lambda: self._deliver_for(peer, packet, answer))

    def _arrive(self, peer: Peer, packet: Packet, answer: Answer, kind: Kind) -> None:
        """Take a packet at the server."""
        if kind in (Kind.APPEND, Kind.CALL) and self._happens("refused", kind):
            code, status = _NOT_NOW[int(self._random.random() * len(_NOT_NOW))]
            self._answer(peer, answer, self.server.refusal(packet, code, status, "not now"))
            return
        behind = 0
        if kind is Kind.READ and self._happens("behind", kind):
            behind = 1 + int(self._random.expovariate(0.5))
        heard = _ignore if self._happens("unheard", kind) else answer
        self._deliver_for(peer, packet, heard, behind)

    def _deliver_for(self, peer: Peer, packet: Packet, answer: Answer, behind: int = 0) -> None:
        self._sender = peer.name
        answers = self._deliver(peer, packet, behind)
        self._answer(peer, answer, answers)

    def _answer(self, peer: Peer, answer: Answer, answers: Sequence[Packet]) -> None:
        if answers and answer is not _ignore:
            self._to_client(peer, lambda: answer(answers))

    def _to_client(self, peer: Peer, receive: Callable[[], None]) -> None:
        group = self._groups[peer.name]
        if self._is_cut(group):
            if self._random.random() < 0.5:
                self.counts["answers lost at a cut"] += 1
                return
            self._sites.deliver(
                group.name, STREAM, self._kernel.now, lambda: _if_open(peer, receive)
            )
            return
        self._kernel.call_at(self._arrival(self._back, peer.name), lambda: _if_open(peer, receive))

    def _arrival(self, last: dict[str, float], name: str) -> float:
        """Return when a message arrives: after those that were sent before it."""
        seconds = self._random.expovariate(1 / _USUAL_SECONDS)
        if self._random.random() < self.faults.slow:
            seconds += self._random.uniform(0, 1.5)
        at = max(self._kernel.now + seconds, last.get(name, 0.0) + 1e-6)
        last[name] = at
        return at

    def _push(self, pushes: Sequence[Push]) -> None:
        for push in pushes:
            peer = self._peers[push.client]
            group = self._groups[push.client]
            announces = push.packet.subject == _ANNOUNCEMENTS
            if group.dead or (announces and group.name in self.deaf):
                continue
            if self._happens("lost", Kind.PUSH):
                continue
            self._to_client(peer, _receiving(peer, push))

    def _beat_later(self, peer: Peer, consumer: Consumer) -> None:
        """Send a consumer's heartbeats while it is there."""

        def beat() -> None:
            group = self._groups[peer.name]
            if not group.dead and peer.is_open() and self.server.has_consumer(consumer.name):
                self._push(self.server.heartbeat(consumer))
                self._kernel.call_later(consumer.beat_seconds, beat)

        self._kernel.call_later(consumer.beat_seconds, beat)


def _receiving(peer: Peer, push: Push) -> Callable[[], None]:
    return lambda: peer.receive(push.subscription, push.packet)


def _if_open(peer: Peer, receive: Callable[[], None]) -> None:
    if peer.is_open():
        receive()


def _connect_again(peer: StandInClient) -> None:
    if not peer.is_closed and not peer.online:
        peer.reconnect()


def _ignore(_: Sequence[Packet]) -> None:
    """Take answers that nobody waits for."""


class Connections:
    """Makes the connections of replicas; it takes the place of `NatsConnection`."""

    def __init__(self, wire: SimulatedWire, network: Network, kernel: Kernel) -> None:
        self._wire, self._network, self._kernel = wire, network, kernel
        self._made = 0

    def __call__(self, servers: Sequence[str], name: str, _: object = None) -> NatsConnection:
        """Return a connection of the process that runs. Raises StartupError."""
        group = self._kernel.current.group
        assert group is not None
        self._made += 1
        unique = f"{group.name}-{self._made}"

        async def connect(_: Sequence[str], __: str) -> StandInClient:
            deadline = self._kernel.now + _CONNECT_SECONDS
            while self._network.is_cut(group.name, STREAM):
                if self._kernel.now > deadline:
                    raise StartupError("no NATS server can be reached")
                await asyncio.sleep(_AGAIN_SECONDS)
            return self._wire.client_of(group, unique)

        return NatsConnection(servers, name, connect=connect)
