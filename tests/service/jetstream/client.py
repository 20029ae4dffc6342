"""The client of nats-py with its socket replaced by a wire, and connections that use it.

What nats-py does above its socket runs as it is: subscriptions, buckets, watches with their ordered
consumers, and the errors that they raise.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import nats.errors
from nats.aio.client import Client, ServerVersion
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.api import Header

from tests.service.jetstream.calls import VERSION
from tests.service.jetstream.network import Fate, Held, Lost, Unheard
from tests.service.jetstream.packet import Packet, encoded
from tests.service.jetstream.wire import Wire
from wolfstream.service.fleet.connection import NatsConnection

logger = logging.getLogger(__name__)

_NO_RESPONDERS = "503"
# What a client that is not connected sends later; the default of nats-py.
_PENDING_BYTES = 2 << 20
# The headers in the place of an answer that will not come.
_SILENT = {"Stand-In": "silence"}


async def _note(error: Exception) -> None:
    """Log a problem that the client goes on after, as `fleet.connecting` does."""
    logger.warning("NATS: %s", error or type(error).__name__)


class StandInSubscription(Subscription):
    """A subscription whose reader may be told at once that nothing will come."""

    async def next_msg(self, timeout: float | None = 1.0) -> Msg:  # noqa: ASYNC109 - as its base
        """Return the next message. Raises TimeoutError."""
        message = await super().next_msg(timeout)
        if message.headers == _SILENT:
            raise nats.errors.TimeoutError
        return message


class StandInClient(Client):
    """A client of the server at the end of a wire.

    name: by which fates are scripted, and unlike that of every other client of the wire.
    """

    def __init__(self, wire: Wire, name: str) -> None:
        super().__init__()
        self.name, self._wire = name, wire
        self.loop = asyncio.get_running_loop()
        self.online = True
        self._status = Client.CONNECTED
        self._max_payload, self._max_pending_size = wire.server.max_payload, _PENDING_BYTES
        # What has come: packets for subscriptions, and what ends a request, in this order.
        self._come: asyncio.Queue[Callable[[], Coroutine[Any, Any, None]]] = asyncio.Queue()
        self._error_cb = _note
        self._inboxes = 0
        # Packets that were sent while this client was not connected.
        self._unsent: list[Packet] = []
        self._reading_task = asyncio.create_task(self._read_loop())
        wire.attach(self)

    @property
    def connected_server_version(self) -> ServerVersion:
        """Return the version of the server whose answers the stand-in gives."""
        return ServerVersion(VERSION)

    def is_open(self) -> bool:
        """Return whether this client may still get something."""
        return not self.is_closed and not self.loop.is_closed()

    def disconnect(self) -> None:
        """Lose the connection: what is sent waits, and what others send is missed.

        On the client's loop, as `reconnect`.
        """
        self._status, self.online = Client.RECONNECTING, False
        self._wire.disconnect(self)

    def reconnect(self) -> None:
        """Connect again, and send what has waited."""
        self._status, self.online = Client.CONNECTED, True
        for number, subscription in self._subs.items():
            self._wire.subscribe(self, number, subscription.subject)
        unsent, self._unsent = self._unsent, []
        for packet in unsent:
            self._wire.send(self, packet, _ignore)

    def new_inbox(self) -> str:
        """Return a subject that nobody else uses."""
        self._inboxes += 1
        return f"_INBOX.{self.name}.{self._inboxes}"

    async def subscribe(  # type: ignore[override]
        self,
        subject: str,
        queue: str = "",
        cb: Callable[[Msg], Coroutine[Any, Any, None]] | None = None,
        pending_msgs_limit: int = 1 << 19,
        pending_bytes_limit: int = 1 << 27,
    ) -> Subscription:
        """Subscribe to a subject; see the base."""
        if self.is_closed:
            raise nats.errors.ConnectionClosedError
        if queue:
            raise NotImplementedError("the stand-in does not model queue groups")
        self._sid += 1
        subscription = StandInSubscription(
            self,
            self._sid,
            subject,
            cb=cb,
            pending_msgs_limit=pending_msgs_limit,
            pending_bytes_limit=pending_bytes_limit,
        )
        subscription._start(self._error_cb)  # type: ignore[no-untyped-call]
        self._subs[self._sid] = subscription
        await self._send_subscribe(subscription)
        return subscription

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        timeout: float = 0.5,  # noqa: ASYNC109 - as its base
        old_style: bool = False,
        headers: dict[str, Any] | None = None,
    ) -> Msg:
        """Send a request and return its answer. Raises TimeoutError, NoRespondersError."""
        assert not old_style
        self._check(payload)
        reply, future = self.new_inbox(), self.loop.create_future()

        def take(answers: Sequence[Packet]) -> None:
            if answers:
                self._put(lambda: self._end(future, answers[0]))

        packet = Packet(subject, reply, encoded(headers), payload)
        if not self.online:
            self._unsent.append(packet)
            fate: Fate = Lost()
        else:
            fate = self._wire.send(self, packet, take)
        if _is_silent(fate):
            await asyncio.sleep(0)
            raise nats.errors.TimeoutError
        try:
            message: Msg = await asyncio.wait_for(future, timeout)
        except TimeoutError:
            raise nats.errors.TimeoutError from None
        if message.headers and message.headers.get(Header.STATUS) == _NO_RESPONDERS:
            raise nats.errors.NoRespondersError
        return message

    async def _send_publish(
        self,
        subject: str,
        reply: str,
        payload: bytes,
        payload_size: int,  # noqa: ARG002 - as its base
        headers: dict[str, Any] | None,
    ) -> None:
        self._check(payload)

        def take(answers: Sequence[Packet]) -> None:
            for number, subscription in self._subs.copy().items():
                if subscription.subject == reply:
                    for packet in answers:
                        self.receive(number, packet)

        packet = Packet(subject, reply, encoded(headers), payload)
        if not self.online:
            self._unsent.append(packet)
            return
        fate = self._wire.send(self, packet, take)
        if reply and _is_silent(fate):
            take([Packet(reply, "", encoded(_SILENT))])
        await asyncio.sleep(0)

    def receive(self, number: int, packet: Packet) -> None:
        """Take a packet for a subscription; on any thread."""
        names = packet.subject.encode(), packet.reply.encode()
        body, headers = packet.body, packet.headers
        self._put(lambda: self._process_msg(number, *names, body, headers))

    def _put(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Let something be done after all that has come before; on any thread.

        What comes while this client is not connected is lost.
        """
        if not self.online:
            return
        if asyncio._get_running_loop() is self.loop:
            self._come.put_nowait(work)
        elif self.is_open():
            self.loop.call_soon_threadsafe(self._come.put_nowait, work)

    async def _read_loop(self) -> None:
        while True:
            work = await self._come.get()
            await work()

    async def _end(self, future: asyncio.Future[Msg], answer: Packet) -> None:
        if not future.done():
            headers = await self._process_headers(answer.headers)
            future.set_result(Msg(self, answer.subject, "", answer.body, headers))

    def _check(self, payload: bytes) -> None:
        if self.is_closed:
            raise nats.errors.ConnectionClosedError
        if len(payload) > self._max_payload:
            raise nats.errors.MaxPayloadError

    async def _send_subscribe(self, sub: Subscription) -> None:
        if self.online:
            self._wire.subscribe(self, sub._id, sub.subject)
        await asyncio.sleep(0)

    async def _send_unsubscribe(self, sid: int, limit: int = 0) -> None:
        assert not limit
        self._wire.unsubscribe(self, sid)
        await asyncio.sleep(0)

    async def _flush_pending(self, force_flush: bool = False) -> None:
        """Do nothing: what is sent goes out at once."""

    async def _close(self, status: int, do_cbs: bool = True) -> None:
        for number in self._subs:
            self._wire.unsubscribe(self, number)
        await super()._close(status, do_cbs)


def connection(wire: Wire, name: str) -> NatsConnection:
    """Return a connection with a thread of its own, as a replica has it.

    name: of its client; see `StandInClient`.
    """
    return NatsConnection([f"nats://{name}"], name, connect=connector(wire))


def connector(wire: Wire) -> Callable[[Sequence[str], str], Coroutine[Any, Any, Client]]:
    """Return what takes the place of `connecting.connected_client`."""

    async def connect(_: Sequence[str], name: str) -> Client:
        return StandInClient(wire, name)

    return connect


def _is_silent(fate: Fate) -> bool:
    """Return whether the client's time-out for an answer has passed already."""
    if isinstance(fate, Held):
        return not fate.heard
    return isinstance(fate, Lost | Unheard) and not fate.timed


def _ignore(_: Sequence[Packet]) -> None:
    """Take answers that nobody waits for."""
