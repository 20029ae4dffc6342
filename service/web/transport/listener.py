"""Accepts connections, many in a pass of the event loop, and counts them from then on.

asyncio's servers hand a connection to its protocol only after its TLS handshake. Until then it
would take an open file without being counted, for as long as its client likes; here it can be
closed to make room for others. And uvloop's servers accept one connection in a pass, so a client
that kept the loop busy would keep all that come after it waiting: 28,000 requests on 700
connections kept a new one from the health paths for 14 s.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from wolfstream.service.web.transport.connection_eviction import AwaitedStep, ClientWait

logger = logging.getLogger(__name__)

# Maximum number of connections that are accepted in one pass of the event loop.
_AT_ONCE = 64
# How long to accept nothing after the process has run out of open files.
_PAUSE_SECONDS = 1.0


class Handshake:
    """A connection before its protocol has it; it may be closed at any time to make room.

    Args:
        accepted: its socket.
        client: the address and port of the other end.
        since: when it was accepted.
        connections: the set of all connections, which contains it.
    """

    def __init__(
        self, accepted: socket.socket, client: tuple[str, int], since: float, connections: set[Any]
    ) -> None:
        self.client = client
        self._accepted, self._since, self._connections = accepted, since, connections

    def waiting(self, _: float) -> ClientWait:
        """Return that the client has to send a request."""
        return ClientWait(AwaitedStep.REQUEST, self._since)

    def give_way(self) -> None:
        """Close the connection; asyncio then detects the end of its input, and drops it."""
        self._connections.discard(self)
        with suppress(OSError):  # the client has left
            self._accepted.shutdown(socket.SHUT_RDWR)

    shutdown = give_way  # uvicorn calls this when it stops


class Successor(Protocol):
    """What a handshake needs of the protocol that the connection has afterwards."""

    connections: set[Any]
    patience: float
    # The successor removes it from `connections` when it is added itself.
    handshake: Handshake | None

    def has_room(self) -> bool:
        """Return whether another connection may be opened, perhaps after closing some."""

    def note_change(self) -> None:
        """Report that a connection was opened or closed."""


class Listener:
    """Accepts connections and performs TLS handshakes; it is closed like a server of asyncio.

    Args:
        listener: a bound socket.
        backlog: how many connections may wait to be accepted.
        tls: for the handshakes; None for connections that are not encrypted.
        new_protocol: returns a new protocol for a connection, which is both a `Successor` and an
            `asyncio.Protocol`.
    """

    def __init__(
        self,
        listener: socket.socket,
        backlog: int,
        tls: ssl.SSLContext | None,
        new_protocol: Callable[[], Any],
    ) -> None:
        self._listener, self._tls, self._new_protocol = listener, tls, new_protocol
        self._loop = asyncio.get_running_loop()
        # Keeps the tasks alive: the loop has only weak references to them.
        self._tasks = set[asyncio.Task[None]]()
        listener.setblocking(False)
        listener.listen(backlog)
        self._listen()

    def close(self) -> None:
        """Accept no more connections."""
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener)
            self._listener.close()

    async def wait_closed(self) -> None:
        """Do nothing: the server that closes this waits for the connections itself."""

    def _listen(self) -> None:
        if self._listener.fileno() >= 0:
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        """Accept the connections that are waiting."""
        for _ in range(_AT_ONCE):
            try:
                accepted, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                logger.error("no connection can be accepted: error=%s", error)
                self._loop.remove_reader(self._listener)
                self._loop.call_later(_PAUSE_SECONDS, self._listen)
                return
            self._begin(accepted, (str(address[0]), int(address[1])))

    def _begin(self, accepted: socket.socket, client: tuple[str, int]) -> None:
        """Hand a connection to its protocol, after a handshake; close it if there are too many."""
        successor: Successor = self._new_protocol()
        if not successor.has_room():
            accepted.close()
            return
        connections, now = successor.connections, self._loop.time()
        successor.handshake = Handshake(accepted, client, now, connections)
        connections.add(successor.handshake)
        successor.note_change()
        task = self._loop.create_task(self._shake_hands(accepted, successor))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _shake_hands(self, accepted: socket.socket, successor: Any) -> None:
        accepted.setblocking(False)
        try:
            await self._loop.connect_accepted_socket(
                lambda: successor,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else successor.patience,
            )
        except OSError:  # includes TLS errors: the client left, was slow, or does not speak TLS
            successor.connections.discard(successor.handshake)
            successor.note_change()
