"""A real server in a process of its own, started, stopped and killed by tests."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx


class ServerProcess:
    """`wolfstream serve` on a free port over a data directory that outlives it."""

    def __init__(self, data: Path, **settings: object) -> None:
        self.data = data
        self.settings = settings
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = data.parent / f"{data.name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> "ServerProcess":
        """Start it, with more arguments, and wait until it is ready."""
        process = self.launch(*more)
        deadline = time.monotonic() + 300  # the first start compiles
        while not self._ready():
            if process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"the server did not start:\n{self.log()}")
            time.sleep(0.05)
        return self

    def launch(self, *more: str) -> "subprocess.Popen[bytes]":
        """Start it and wait for nothing."""
        variables = {f"WOLFSTREAM_{name.upper()}": str(v) for name, v in self.settings.items()}
        arguments = ["--port", str(self.port), "--data", str(self.data), *more]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "service", "serve", *arguments],
                env=os.environ | variables,
                stdout=log,
                stderr=log,
            )
        return self.process

    def kill(self) -> None:
        """kill -9: nothing is flushed, nothing is finished."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def terminate(self) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(60)

    def close(self) -> None:
        """Make sure that nothing is left running."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def log(self) -> str:
        """What it has printed."""
        return self.log_path.read_text()

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
