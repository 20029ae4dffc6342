"""Real servers in processes of their own, started, stopped and killed by tests."""

import atexit
import contextlib
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
# Unlike the generator of `random`, in each process another one also where a test has set a seed.
_RANDOM = random.SystemRandom()
# Forked from a process that has imported everything, a server starts in a tenth of the time.
multiprocessing.get_context("forkserver").set_forkserver_preload(["tests.service.prepared"])


class ServerProcess:
    """`wolfstream serve` on a free port over a data directory that outlives it.

    It is forked from a process that is prepared; `CommandProcess` starts it as a shell does.
    """

    def __init__(self, data: Path, **settings: object) -> None:
        self.data = data
        self.settings = settings
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = data.parent / f"{data.name}.log"
        self.process: Forked | subprocess.Popen[bytes] | None = None
        # Called in the process of the server, before it.
        self.prelude: Callable[[], None] | None = None

    def start(self, *more: str) -> "ServerProcess":
        """Start it, with more arguments, and wait until it is ready."""
        self.launch(*more)
        return self.wait()

    def wait(self) -> "ServerProcess":
        """Wait until it is ready."""
        process = self.process
        assert process is not None
        deadline = time.monotonic() + 300  # the first start compiles
        while not self._ready():
            if process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"the server did not start:\n{self.log()}")
            time.sleep(0.01)
        return self

    def launch(self, *more: str) -> "Forked | subprocess.Popen[bytes]":
        """Start it and wait for nothing."""
        self.log_path.touch()
        with contextlib.chdir(ROOT):  # where the prepared process finds its modules
            given = self.arguments(*more), self.environment(), self.log_path, self.prelude
            self.process = Forked(target=_serve, args=given)
            self.process.start()
        return self.process

    def arguments(self, *more: str) -> list[str]:
        """The command line after `wolfstream`."""
        return ["serve", "--port", str(self.port), "--data", str(self.data), *more]

    def environment(self) -> dict[str, str]:
        """The variables of this process, and the settings as variables."""
        return os.environ | {
            f"WOLFSTREAM_{name.upper()}": str(v) for name, v in self.settings.items()
        }

    def kill(self) -> None:
        """kill -9: nothing is flushed, nothing is finished."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)

    def terminate(self) -> int:
        """SIGTERM; the exit code."""
        self.send_signal(signal.SIGTERM)
        assert self.process is not None
        return self.process.wait(60)

    def send_signal(self, number: int) -> None:
        """Send a signal to it."""
        assert self.process is not None
        self.process.send_signal(number)

    def exit_code(self) -> int:
        """Its exit code, once it has ended by itself."""
        assert self.process is not None
        try:
            return self.process.wait(30)
        except (TimeoutError, subprocess.TimeoutExpired):
            raise AssertionError(f"the server does not end:\n{self.log()}") from None

    def close(self) -> None:
        """Make sure that nothing is left running."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def log(self) -> str:
        """What it has printed."""
        return self.log_path.read_text()

    def _ready(self) -> bool:
        if not listens(self.port):  # much cheaper to find out than by a client of httpx
            return False
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False


class CommandProcess(ServerProcess):
    """The same, started as a shell does, by an interpreter of its own."""

    def launch(self, *more: str) -> "subprocess.Popen[bytes]":
        """Start it and wait for nothing."""
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "wolfstream", *self.arguments(*more)],
                env=self.environment(),
                stdout=log,
                stderr=log,
            )
        return self.process


class Forked(ForkServerProcess):
    """A process that is forked from the prepared one; its handle is used like a `Popen`."""

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        return self.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended. Raises TimeoutError."""
        self.join(timeout)
        if self.exitcode is None:
            raise TimeoutError
        return self.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal to it while it runs."""
        if self.pid is not None and self.exitcode is None:
            os.kill(self.pid, number)


def _serve(
    arguments: list[str],
    environment: dict[str, str],
    log_path: Path,
    prelude: Callable[[], None] | None,
) -> None:
    """What the forked process does."""
    from wolfstream.service.cli.main import main

    os.environ.clear()
    os.environ.update(environment)
    with log_path.open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    if prelude is not None:
        prelude()
    main(arguments, prog_name="wolfstream")


@atexit.register
def _kill_what_is_left() -> None:
    """End what a test that failed has left: multiprocessing would wait for it."""
    for process in multiprocessing.active_children():
        process.kill()


def listens(port: int) -> bool:
    """Whether a server on this machine takes connections."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port that nobody listens on.

    The system gives none of these to the connections of clients: it stays free between a server's
    end and the next one's start.
    """
    while True:
        port = _RANDOM.randrange(10_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port
