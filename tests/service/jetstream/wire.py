"""What carries packets between clients and the server, and what becomes of them on the way."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from tests.service.jetstream.atomic_batches import BATCH_COMMIT, BATCH_ID
from tests.service.jetstream.consumer import Consumer
from tests.service.jetstream.network import (
    Behind,
    Call,
    Fate,
    Held,
    Kind,
    Late,
    Lost,
    Network,
    RefusedWith,
    Unheard,
    Unserved,
    is_possible,
)
from tests.service.jetstream.packet import Packet, decoded
from tests.service.jetstream.server import Outcome, Push, Server

Answer: TypeAlias = Callable[[Sequence[Packet]], None]


class Peer(Protocol):
    """A client, as the wire knows it."""

    name: str
    loop: asyncio.AbstractEventLoop

    def receive(self, number: int, packet: Packet) -> None:
        """Take a packet for one subscription; on any thread."""

    def is_open(self) -> bool:
        """Return whether the client may still get something."""


class _HeldPacket:
    """A packet on its way. left: how many others arrive first; None for as long as it is held."""

    def __init__(self, deliver: Callable[[], None], left: int | None) -> None:
        self.deliver, self.left = deliver, left


class Wire:
    """The way from some clients to a server. Any thread may use it.

    network: decides about each packet; it may be replaced at any time.
    """

    def __init__(self, server: Server, network: Network | None = None) -> None:
        self.server, self.network = server, network or Network()
        self._lock = threading.RLock()
        self._peers: dict[str, Peer] = {}
        self._held: list[_HeldPacket] = []
        self._counts = Counter[tuple[str, Kind]]()

    def attach(self, peer: Peer) -> None:
        """Let a client get what is for it. Raises ValueError if another one has its name."""
        with self._lock:
            other = self._peers.get(peer.name)
            if other is not None and other.is_open():
                raise ValueError(f"there is a client {peer.name!r} already")
            self._peers[peer.name] = peer

    def subscribe(self, peer: Peer, number: int, pattern: str) -> None:
        """Tell the server of a subscription."""
        with self._lock:
            self._push(self.server.subscribe(peer.name, number, pattern))

    def unsubscribe(self, peer: Peer, number: int) -> None:
        """Tell the server that a subscription has ended."""
        with self._lock:
            self.server.unsubscribe(peer.name, number)

    def disconnect(self, peer: Peer) -> None:
        """Tell the server that a client is not connected."""
        with self._lock:
            self.server.disconnect(peer.name)

    def send(self, peer: Peer, packet: Packet, answer: Answer) -> Fate:
        """Send a packet, and return its fate.

        answer: is called with the answers if they come, perhaps later and on another thread.
        """
        with self._lock:
            call = self._call(self._kind(packet), peer.name, packet)
            fate = self.network.fate(call)
            self._check(call, fate)
            if isinstance(fate, Held):
                heard = answer if fate.heard else _ignore

                def deliver() -> None:
                    heard(self._deliver(peer, packet))

                self._held.append(_HeldPacket(deliver, fate.past))
            elif isinstance(fate, Late):
                self._send_late(peer, packet, answer, fate)
            elif isinstance(fate, RefusedWith):
                answer(self.server.refusal(packet, fate.code, fate.status, fate.description))
            elif isinstance(fate, Unserved):
                answer(self.server.unserved(packet))
            elif not isinstance(fate, Lost):
                behind = fate.changes if isinstance(fate, Behind) else 0
                answers = self._deliver(peer, packet, behind)
                if not isinstance(fate, Unheard):
                    answer(answers)
                if call.kind in (Kind.APPEND, Kind.CALL):
                    self._let_pass()
            return fate

    @property
    def n_held(self) -> int:
        """Return the number of packets that are held."""
        with self._lock:
            return len(self._held)

    def release(self) -> None:
        """Deliver all packets that are held, the oldest first."""
        with self._lock:
            held, self._held = self._held, []
            for one in held:
                one.deliver()

    def abandon_batches(self) -> None:
        """Let the server forget all unfinished batches, as it does after ten seconds."""
        with self._lock:
            self.server.abandon_batches()

    def _send_late(self, peer: Peer, packet: Packet, answer: Answer, fate: Late) -> None:
        def deliver() -> None:
            with self._lock:
                answers = self._deliver(peer, packet)
            peer.loop.call_later(fate.back, answer, answers)

        peer.loop.call_later(fate.there, deliver)

    def _let_pass(self) -> None:
        """Count a packet that has arrived before those that are held, and deliver what is due."""
        for one in self._held:
            if one.left is not None:
                one.left -= 1
        due = [one for one in self._held if one.left is not None and one.left <= 0]
        self._held = [one for one in self._held if one not in due]
        for one in due:
            one.deliver()

    def _deliver(self, peer: Peer, packet: Packet, behind: int | None = 0) -> list[Packet]:
        outcome: Outcome = self.server.publish(packet, behind)
        self._push(outcome.pushes)
        if outcome.created is not None and outcome.created.beat_seconds:
            self._beat_later(peer, outcome.created)
        return outcome.answers

    def _beat_later(self, peer: Peer, consumer: Consumer) -> None:
        """Send a consumer's heartbeats while it is there, by the clock of its client's loop."""

        def beat() -> None:
            with self._lock:
                if peer.is_open() and self.server.has_consumer(consumer.name):
                    self._push(self.server.heartbeat(consumer))
                    peer.loop.call_later(consumer.beat_seconds, beat)

        def begin() -> None:
            peer.loop.call_later(consumer.beat_seconds, beat)

        peer.loop.call_soon_threadsafe(begin)

    def _push(self, pushes: Sequence[Push]) -> None:
        for push in pushes:
            peer = self._peers[push.client]
            call = self._call(Kind.PUSH, push.client, push.packet)
            fate = self.network.fate(call)
            self._check(call, fate)
            if isinstance(fate, Lost) or not peer.is_open():
                continue
            if isinstance(fate, Late):
                self._push_late(peer, push, fate.there)
            else:
                peer.receive(push.subscription, push.packet)

    def _push_late(self, peer: Peer, push: Push, seconds: float) -> None:
        def begin() -> None:
            peer.loop.call_later(seconds, peer.receive, push.subscription, push.packet)

        peer.loop.call_soon_threadsafe(begin)

    def _kind(self, packet: Packet) -> Kind:
        if packet.subject.startswith("$JS.API.DIRECT.GET."):
            return Kind.READ
        if packet.subject.startswith("$JS.API."):
            return Kind.CALL
        if not any(stream.takes(packet.subject) for stream in self.server.streams.values()):
            return Kind.PUBLISH
        headers = decoded(packet.headers)
        return Kind.PART if BATCH_ID in headers and BATCH_COMMIT not in headers else Kind.APPEND

    def _call(self, kind: Kind, client: str, packet: Packet) -> Call:
        self._counts[client, kind] += 1
        number = self._counts[client, kind]
        return Call(kind, client, number, packet.subject, decoded(packet.headers), packet.body)

    def _check(self, call: Call, fate: Fate) -> None:
        if not is_possible(call.kind, fate):
            raise ValueError(f"no {call.kind.name} can be {fate}")


def _ignore(_: Sequence[Packet]) -> None:
    """Take answers that nobody waits for."""
