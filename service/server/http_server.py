"""Configures uvicorn, in all processes of a server."""

import asyncio
import functools
import logging
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.key_ring import KeyRing
from wolfstream.service.access.keys import KeysError
from wolfstream.service.errors import StartupError
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.formats.problems import problem_response
from wolfstream.service.web.routes.stream import Streams
from wolfstream.service.web.transport.connections import BoundedProtocol
from wolfstream.service.web.transport.listener import Listener
from wolfstream.service.web.transport.stream_connections import BoundedStream

logger = logging.getLogger(__name__)

# How long a stopping server waits for clients that do not read their responses.
SHUTDOWN_SECONDS = 5
# How often to check for changes of the keys.
_KEYS_SECONDS = 0.5


def client_config(
    settings: Settings,
    memory: MemoryBudget,
    elsewhere: Callable[[], int] = lambda: 0,
    changed: Callable[[], None] = lambda: None,
) -> uvicorn.Config:
    """Return the configuration for connections of clients.

    Args:
        settings: the server's settings.
        memory: the budget of all requests.
        elsewhere: returns the number of open connections to other processes of the server.
        changed: called when a connection to this process was opened or closed.
    """
    # uvicorn's type asks for a class, but it only calls this.
    protocol: Any = functools.partial(
        BoundedProtocol, settings, problem_response, elsewhere, changed
    )
    streams: Any = functools.partial(BoundedStream, settings, memory, changed)
    return uvicorn.Config(
        lambda: None,
        http=protocol,
        ws=streams,
        # At level INFO, uvicorn logs the query of each stream, in which a client may send a key.
        log_level="warning",
        lifespan="off",
        access_log=False,
        log_config=None,
        ws_max_size=settings.body_bytes,
        # A compressed frame of 64 kB could hold 64 MB, and it is decompressed on the event loop.
        ws_per_message_deflate=False,
        server_header=False,
        # Proxies may send the addresses of their clients, but nothing uses them.
        proxy_headers=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )


class HttpServer(uvicorn.Server):
    """uvicorn's server, with a listener of our own."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on bound sockets."""
        if self.config.http == "auto":  # of `leader_config`: workers are few, and trusted
            await super().startup(sockets)
            return
        tls, backlog = self.config.ssl, self.config.backlog
        await super().startup([])
        for listener in sockets or ():
            # uvicorn only calls its `close` and `wait_closed`.
            server: Any = Listener(listener, backlog, tls, self._new_protocol)
            self.servers.append(server)

    def _new_protocol(self) -> Any:
        """Return the protocol of a new connection, made as uvicorn makes it."""
        make: Any = self.config.http_protocol_class
        return make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )


def leader_config() -> uvicorn.Config:
    """Return the configuration for connections of workers, which apply the limits to clients."""
    return uvicorn.Config(
        lambda: None,
        log_level="warning",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        # A worker sends the scheme that its client used.
        proxy_headers=True,
        forwarded_allow_ips="*",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


def read_ring(settings: Settings) -> KeyRing:
    """Return the keys of a server. Raises StartupError."""
    try:
        return KeyRing(KeyFile(settings.data))
    except KeysError as error:
        raise StartupError(str(error)) from None


async def watch_keys(
    ring: KeyRing, streams: Streams, note: Callable[[], None] = lambda: None
) -> None:
    """Apply changes of the keys, and end the streams of revoked keys, until cancelled.

    Args:
        ring: the keys.
        streams: the open streams.
        note: called on another thread after a change; it records whether the server has keys. A
            StartupError from it is logged.
    """
    logged = ""  # the last error, to log each error only once
    while True:
        await asyncio.sleep(_KEYS_SECONDS)
        try:
            if ring.refresh():
                logged = ""
                logger.info("keys changed")
                await asyncio.to_thread(note)
        except (KeysError, StartupError) as error:
            if str(error) != logged:
                logged = str(error)
                logger.error("keys not applied, the previous ones stay in force: error=%s", logged)
        # Also without a change, because a stream may have been opening while its key was revoked.
        streams.end_revoked(ring)
