"""Runs the worker processes of a server, in the process that learns."""

import socket
import sys
import tempfile
from pathlib import Path

from wolfstream.service.access.key_file import encode_keys
from wolfstream.service.access.key_ring import KeyRing
from wolfstream.service.cluster.announcements import FleetLink
from wolfstream.service.cluster.feeds import Feeds
from wolfstream.service.cluster.leader import Leader
from wolfstream.service.cluster.processes import WorkerProcesses
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import StartupError
from wolfstream.service.settings import Settings
from wolfstream.service.web.formats.memory import MemoryBudget


def check_workers(settings: Settings) -> None:
    """Raise StartupError if the settings have workers on a system that does not support them."""
    if settings.workers and sys.platform != "linux":
        raise StartupError(
            f"--workers {settings.workers}: processes share a port evenly on Linux only, this is "
            f"{sys.platform}; start without --workers"
        )


def listen_at(path: Path) -> socket.socket:
    """Return a Unix socket that is bound to a path. Raises StartupError."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
    except OSError as error:
        listener.close()
        # A path that is too long, of more than 107 bytes, has no `strerror`.
        raise StartupError(
            f"no socket can be made in {path.parent}: {error.strerror or error}; let TMPDIR name a "
            "shorter directory that is writable, or start without --workers"
        ) from None
    return listener


class Workers:
    """Worker processes, and the socket on which this process answers forwarded requests.

    Args:
        listeners: the sockets on which the workers accept clients.
        fleet: the replica's roles in its fleet, if it has one.

    Attributes:
        leader: exchanges messages with the workers.
        listener: the socket for forwarded requests.

    Raises StartupError if the socket cannot be created.
    """

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        feeds: Feeds,
        ring: KeyRing,
        memory: MemoryBudget,
        listeners: list[socket.socket],
        fleet: FleetLink | None,
    ) -> None:
        self.leader = Leader(engine, feeds, ring.spent_elsewhere, lambda: memory.held, fleet)
        announcements = self.leader.announcements
        ring.spent = announcements.announce_spent
        ring.changed = lambda: announcements.announce_keys(encode_keys(ring.keys))
        memory.elsewhere = lambda: announcements.use.held_bytes
        # Other users cannot open files in this directory.
        self._directory = tempfile.TemporaryDirectory(prefix="wolfstream-")
        path = Path(self._directory.name) / "leader"
        self.listener = listen_at(path)
        self._processes = WorkerProcesses(
            settings, listeners, self.leader, lambda: encode_keys(ring.keys), str(path)
        )

    async def run(self) -> None:
        """Start the workers, and keep them informed until cancelled."""
        self._processes.start()
        await self.leader.announcements.run()

    async def stop(self) -> None:
        """Wait until the workers have answered the requests that they accepted, and have exited."""
        await self._processes.stop()
        self._directory.cleanup()
