"""TLS handshakes: connections that wait for their clients, counted and dropped as such.

asyncio's servers show a connection to its protocol when its handshake has ended. Until then it
would take an open file and no place among `connections`, as long as its client likes. So
connections are accepted here, and handed to asyncio for their handshakes.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from wolfstream.service.web.layers.room import Awaited, Waiting

logger = logging.getLogger(__name__)

# So many are accepted before others get their turn on the loop.
_AT_ONCE = 64
# How long nothing is accepted where no open file is left.
_PAUSE_SECONDS = 1.0


class Handshake:
    """A connection until its TLS handshake has ended. It gives way; see `room.Connection`.

    client: the address and port of the other end. since: when it was accepted.
    """

    def __init__(
        self, accepted: socket.socket, client: tuple[str, int], since: float, connections: set[Any]
    ) -> None:
        self.client = client
        self._accepted, self._since, self._connections = accepted, since, connections

    def waiting(self, _: float) -> Waiting:
        """Return that it waits for its client."""
        return Waiting(Awaited.REQUEST, self._since)

    def give_way(self) -> None:
        """Close it for another one. The loop reads its end, and lets go of it."""
        self._connections.discard(self)
        with suppress(OSError):  # the client has left
            self._accepted.shutdown(socket.SHUT_RDWR)

    shutdown = give_way  # the server stops


class Successor(Protocol):
    """The protocol of a connection after its handshake, as far as that matters before it."""

    connections: set[Any]
    patience: float
    # Leaves `connections` when the successor enters them.
    handshake: Handshake | None

    def has_room(self) -> bool:
        """Return whether another connection may be open, after some gave way if need be."""

    def note_change(self) -> None:
        """Say that a connection was opened or closed."""


class TlsListener:
    """Accepts connections, and shakes hands; it is closed like a server of asyncio.

    backlog: how many may wait to be accepted. new_protocol: makes the protocol of a connection,
        a `Successor` and `asyncio.Protocol`.
    """

    def __init__(
        self,
        listener: socket.socket,
        backlog: int,
        tls: ssl.SSLContext,
        new_protocol: Callable[[], Any],
    ) -> None:
        self._listener, self._tls, self._new_protocol = listener, tls, new_protocol
        self._loop = asyncio.get_running_loop()
        # The loop has only weak references to tasks.
        self._tasks = set[asyncio.Task[None]]()
        listener.setblocking(False)
        listener.listen(backlog)
        self._listen()

    def close(self) -> None:
        """Accept nothing more."""
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener)
            self._listener.close()

    async def wait_closed(self) -> None:
        """Do nothing: connections are waited for by who closes this."""

    def _listen(self) -> None:
        if self._listener.fileno() >= 0:
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        """Accept what waits."""
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
        """Begin a handshake, unless there are far too many connections."""
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
                ssl_handshake_timeout=successor.patience,
            )
        except OSError:  # of TLS, too; the client has left, was late, or does not speak it
            successor.connections.discard(successor.handshake)
            successor.note_change()
