"""Starts worker processes, restarts those that die, and ends all of them before the leader."""

import asyncio
import contextlib
import logging
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Sequence

import msgpack

from wolfstream.service.cluster.channel import Channel, open_channel
from wolfstream.service.cluster.leader import Leader
from wolfstream.service.settings import Settings

logger = logging.getLogger(__name__)

# Python's arguments for a worker, before the file descriptors of its two sockets.
COMMAND = ("-m", "wolfstream.service.server.worker")
# A worker that lived for less than this is restarted after a pause, which doubles up to a bound.
_YOUNG_SECONDS = 10.0
_MAX_PAUSE_SECONDS = 10.0
# A worker sends its counts every second. One that has sent nothing for so long is ended: the system
# would go on giving it connections. One that starts may take longer until its first frame.
_SILENT_SECONDS, _STARTING_SECONDS = 20.0, 180.0
_CHECK_SECONDS = 1.0
# How long workers that stop may take to answer their requests; longer than their own timeouts.
_STOP_SECONDS = 12.0


class WorkerProcesses:
    """One worker process for each listener. Used on the event loop."""

    def __init__(
        self,
        settings: Settings,
        listeners: Sequence[socket.socket],
        leader: Leader,
        keys: Callable[[], bytes | None],
        forward: str,
    ) -> None:
        """Prepare the workers; `start` starts them.

        Args:
            settings: of the server.
            listeners: the sockets on which workers accept connections, one for each worker.
            leader: serves the channels.
            keys: returns the valid API keys for a new worker, encoded by `access.key_file`.
            forward: path of the socket on which the leader answers requests that workers forward.
        """
        self._settings, self._listeners = settings, listeners
        self._leader, self._keys, self._forward = leader, keys, forward
        self._running: set[Process] = set()
        self._tasks: list[asyncio.Task[None]] = []  # one for each listener
        self._ending = False  # whether `stop` was called: then workers are not restarted

    def start(self) -> None:
        """Start all workers, and keep them running until `stop`."""
        self._tasks = [
            asyncio.create_task(self._keep_running(number, listener))
            for number, listener in enumerate(self._listeners, 1)
        ]

    async def stop(self) -> None:
        """Close the listeners, and wait until all workers have answered their requests."""
        self._ending = True
        for listener in self._listeners:
            listener.close()
        for process in self._running:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        _, late = await asyncio.wait(self._tasks, timeout=_STOP_SECONDS)
        for process in self._running:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        if late:
            await asyncio.wait(late)

    async def _keep_running(self, number: int, listener: socket.socket) -> None:
        """Run a worker, and restart it whenever it exits, until `stop`."""
        pause = 0.0
        while not self._stopping():
            began = time.monotonic()
            code = await self._run(listener)
            is_young = time.monotonic() - began < _YOUNG_SECONDS
            pause = min(2.0 * pause + 0.1, _MAX_PAUSE_SECONDS) if is_young else 0.0
            if not self._stopping():
                logger.warning("worker exited, restarting it: worker=%d code=%d", number, code)
                await asyncio.sleep(pause)

    def _stopping(self) -> bool:
        # A method, because type checkers assume that an attribute stays the same during `await`.
        return self._ending

    async def _run(self, listener: socket.socket) -> int:
        """Run a worker until it exits, and return its exit code."""
        ours, theirs = socket.socketpair()
        files = theirs.fileno(), listener.fileno()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *COMMAND,
                *map(str, files),
                pass_fds=files,
                stdin=DEVNULL,
                # Ctrl-C must only reach the leader, which then stops its workers.
                start_new_session=True,
            )
        self._running.add(process)
        watching: asyncio.Task[None] | None = None
        try:
            channel = await self._open(ours)
            self._leader.connect(channel)
            watching = asyncio.create_task(_end_if_silent(process, channel))
            return await process.wait()
        finally:
            if watching is not None:
                watching.cancel()
            self._running.discard(process)

    async def _open(self, ours: socket.socket) -> Channel:
        """Open the channel to a worker, and send it the settings."""
        channel = await open_channel(ours, self._leader.receive, self._leader.disconnect)
        secrets = {"webhook", "webhook_secret"}  # only the leader needs them
        settings = self._settings.model_dump_json(exclude=secrets)
        channel.send(settings, self._forward, self._keys())
        return channel


async def _end_if_silent(process: Process, channel: Channel) -> None:
    """End a worker that is stopped or hangs, so that another one takes its connections.

    Checks without a frame are counted, and not the time since the last one: if all processes were
    stopped, as of a container that is paused, no worker had the chance to send any.
    """
    arrivals, silent = 0, 0.0
    while silent < (_SILENT_SECONDS if arrivals else _STARTING_SECONDS):
        await asyncio.sleep(_CHECK_SECONDS)
        silent = silent + _CHECK_SECONDS if channel.arrivals == arrivals else 0.0
        arrivals = channel.arrivals
    logger.error("worker does not answer, ending it: pid=%d seconds=%.0f", process.pid, silent)
    with contextlib.suppress(ProcessLookupError):
        process.kill()


def read_settings(connection: socket.socket) -> tuple[Settings, str, bytes | None]:
    """Read a channel's first frame in a worker.

    Return (settings, path of the leader's socket, encoded API keys).
    """
    length = int.from_bytes(_read(connection, 4), "little")
    settings, forward, keys = msgpack.unpackb(_read(connection, length))
    return Settings.model_validate_json(settings), forward, keys


def _read(connection: socket.socket, n_bytes: int) -> bytes:
    content = b""
    while len(content) < n_bytes:
        more = connection.recv(n_bytes - len(content))
        if not more:
            raise SystemExit("the leader is gone")
        content += more
    return content
