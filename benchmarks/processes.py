"""Server processes for benchmarks: started on a free port, stopped at the end."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx


class Server(NamedTuple):
    """A running server."""

    url: str
    pid: int

    def resident_mb(self) -> float:
        """Return its memory that is in RAM."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def wolfstream(
    data: Path, python: str = sys.executable, environment: Mapping[str, str] = os.environ
) -> Iterator[Server]:
    """`wolfstream serve` over a data directory, of this or another installation."""
    port = free_port()
    arguments = ["-m", "wolfstream.service", "serve", "--port", str(port), "--data", str(data)]
    log = data.parent / "wolfstream.log"
    # Elsewhere than where the repository's packages would be found before the installed ones.
    with _running([python, *arguments], port, log, environment, data.parent) as server:
        yield server


@contextmanager
def uvicorn(app: str, log: Path) -> Iterator[Server]:
    """An application of these benchmarks under uvicorn, as a peer."""
    port = free_port()
    arguments = ["-m", "uvicorn", app, "--port", str(port), "--no-access-log"]
    with _running([sys.executable, *arguments], port, log, os.environ, None) as server:
        yield server


@contextmanager
def _running(
    command: list[str], port: int, log: Path, environment: Mapping[str, str], folder: Path | None
) -> Iterator[Server]:
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment, cwd=folder
        )
    try:
        deadline = time.monotonic() + 300
        with httpx.Client(base_url=url, timeout=5) as client:
            while not _is_ready(client):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start:\n{log.read_text()}")
                time.sleep(0.05)
        yield Server(url, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
