"""The server of a worker process, which accepts clients and is connected to the leader."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

from wolfstream.service.access.key_file import CopiedKeys
from wolfstream.service.access.key_ring import KeyRing
from wolfstream.service.cluster.channel import Channel, FrameKind, ResourceUse, open_channel
from wolfstream.service.cluster.follower_engine import FollowerEngine
from wolfstream.service.cluster.reports import WorkerCounts
from wolfstream.service.heads.entry_points import permit
from wolfstream.service.process_settings import begin_serving
from wolfstream.service.server.http_server import (
    SHUTDOWN_SECONDS,
    HttpServer,
    client_config,
    watch_keys,
)
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.routes.app import create_worker_app
from wolfstream.service.web.routes.stream import Streams
from wolfstream.service.web.transport.connections import watch_connections

logger = logging.getLogger(__name__)

# How often to report the resources in use, and the counts, to the leader.
_USE_SECONDS = 0.05
_REPORT_SECONDS = 1.0


def serve_worker(
    settings: Settings,
    channel: socket.socket,
    listener: socket.socket,
    forward: str,
    keys: bytes | None,
) -> None:
    """Answer clients until SIGTERM.

    Args:
        settings: the server's settings.
        channel: the connection to the leader.
        listener: the socket on which to accept clients.
        forward: path of the socket on which the leader answers requests.
        keys: the leader's API keys, encoded by `access.key_file`.
    """
    permit(settings.heads, settings.pickle_heads)
    worker = _Worker(settings, keys)
    loop_factory = worker.config.get_loop_factory()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(worker.run(channel, listener, forward))


class _Worker:
    """A worker: its connections to clients, and its state of the other processes."""

    def __init__(self, settings: Settings, keys: bytes | None) -> None:
        self._settings = settings
        self._elsewhere = ResourceUse()  # what requests to the other processes use
        self._keys = CopiedKeys(keys)
        self._ring = KeyRing(self._keys)
        self._memory = MemoryBudget(settings.shares.requests, lambda: self._elsewhere.held_bytes)
        self._streams = Streams()
        self._use_changed = asyncio.Event()
        self.config = client_config(
            settings,
            self._memory,
            lambda: self._elsewhere.connections,
            self._use_changed.set,
        )
        self._counted: WorkerCounts
        self._server: _Server
        self._channel: Channel
        self._engine: FollowerEngine

    async def run(self, connection: socket.socket, listener: socket.socket, forward: str) -> None:
        """Serve until SIGTERM, then answer the accepted requests."""
        settings, ring = self._settings, self._ring
        self._engine = engine = FollowerEngine(settings)
        self._counted = WorkerCounts(engine)
        self.config.app = create_worker_app(
            engine, settings, self._streams, ring, self._memory, self._counted.requests, forward
        )
        self._server = server = _Server(self.config, self._streams)
        self._channel = await open_channel(connection, self._take, self._lost)
        engine.connect(self._channel)
        ring.spent = lambda key_id, n: self._channel.send(FrameKind.SPENT, key_id, n)
        background = [
            asyncio.create_task(self._load()),
            asyncio.create_task(self._report_use()),
            asyncio.create_task(self._report_counts()),
            asyncio.create_task(watch_keys(ring, self._streams)),
            asyncio.create_task(watch_connections(server.server_state, settings.patience_seconds)),
        ]
        await server.serve(sockets=[listener])
        for task in background:
            task.cancel()
        self._channel.send(FrameKind.REPORT, self._counted.since_last())
        self._channel.close()

    def _take(self, _: Channel, frame: list[Any]) -> None:
        if self._engine.take(frame):
            return
        match frame:
            case [FrameKind.USE, *elsewhere]:
                self._elsewhere = ResourceUse(*elsewhere)
            case [FrameKind.SPENT, key_id, samples]:
                self._ring.spent_elsewhere(key_id, samples)
            case [FrameKind.KEYS, keys]:
                self._keys.take(keys)
                self._ring.refresh()
                self._streams.end_revoked(self._ring)
            case [FrameKind.REPORT]:
                self._channel.send(FrameKind.REPORT, self._counted.since_last())

    def _lost(self, _: Channel) -> None:
        """Exit if the leader is gone: without it, no request can be answered."""
        if not self._server.should_exit:
            logger.error("leader process exited, worker stopping")
            logging.shutdown()
            os._exit(1)

    async def _load(self) -> None:
        await self._engine.load()
        begin_serving()

    async def _report_use(self) -> None:
        """Report to the leader what requests use here, whenever it has changed."""
        reported = ResourceUse()
        while True:
            connections = len(self._server.server_state.connections)
            use = ResourceUse(connections, len(self._streams), self._memory.held)
            if use != reported:
                self._channel.send(FrameKind.USE, *use)
                reported = use
            # Thousands of connections may open and close, so changes are reported together.
            await asyncio.sleep(_USE_SECONDS / 10)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_USE_SECONDS):
                    await self._use_changed.wait()
            self._use_changed.clear()

    async def _report_counts(self) -> None:
        """Report counts to the leader regularly, so that few are lost if this process dies."""
        while True:
            await asyncio.sleep(_REPORT_SECONDS)
            self._channel.send(FrameKind.REPORT, self._counted.since_last())


class _Server(HttpServer):
    """uvicorn's server, which answers all accepted requests before it exits."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Exit on SIGTERM."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._exit)
        yield

    def _exit(self) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, answer accepted requests, and close streams with 1001."""
        for listener in self.servers:
            listener.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._streams.drain(), SHUTDOWN_SECONDS)
        await super().shutdown(sockets)
