"""A real HAProxy before servers of a test, with the settings of `docker/haproxy.cfg`."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from tests.service.process import ROOT, free_port

SETTINGS = ROOT / "docker" / "haproxy.cfg"
# Debian puts it where only root looks.
PROGRAM = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin") or ""
MISSING = "" if PROGRAM else "haproxy is not installed (Debian's package of that name)"


class Balancer:
    """HAProxy before some addresses, such as http://127.0.0.1:8001, of which there are three.

    It has the settings of the compose file, but for the addresses.
    """

    def __init__(self, folder: Path, urls: Sequence[str]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._file, self._log = folder / "haproxy.cfg", folder / "haproxy.log"
        self._file.write_text(_with_addresses(SETTINGS.read_text(), self.port, urls))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Balancer":
        """Start it, and wait until it passes requests on."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, "-db", "-f", str(self._file)], stdout=log, stderr=log
            )
        deadline = time.monotonic() + 60
        while not self._passes_on():
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.05)
        return self

    def _passes_on(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """kill -9: all connections are cut off."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)

    def close(self) -> None:
        """Make sure that it does not run."""
        if self._process is not None and self._process.poll() is None:
            self.kill()


def _with_addresses(settings: str, port: int, urls: Sequence[str]) -> str:
    settings, binds = re.subn(r"bind :8000", f"bind 127.0.0.1:{port}", settings)
    addresses = iter(url.removeprefix("http://") for url in urls)
    settings, servers = re.subn(
        r"(server \w+) replica-\w:8000", lambda m: f"{m[1]} {next(addresses)}", settings
    )
    assert (binds, servers) == (1, len(urls)), "docker/haproxy.cfg has other lines than these"
    return settings
