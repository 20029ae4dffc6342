"""The bound on open files of a server's process: at least its connections, where that may be."""

import functools
import resource
from pathlib import Path

import httpx

from tests.service.process import ServerProcess


def may_open(soft: int, hard: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def started(data: Path, soft: int, hard: int) -> ServerProcess:
    server = ServerProcess(data, connections=300)
    server.prelude = functools.partial(may_open, soft, hard)
    return server.start()


def test_bound_is_raised_for_the_connections(tmp_path: Path):
    server = started(tmp_path, 256, 1024)
    try:
        assert httpx.get(f"{server.url}/livez", timeout=30).status_code == 200
        assert "too few open files" not in server.log()
        assert server.process is not None
        limits = Path(f"/proc/{server.process.pid}/limits").read_text().splitlines()
        (line,) = (line for line in limits if line.startswith("Max open files"))
        assert line.split()[3:5] == ["500", "1024"]
    finally:
        server.close()


def test_bound_that_cannot_be_raised_is_warned_of(tmp_path: Path):
    server = started(tmp_path, 256, 256)
    try:
        assert "too few open files for all connections: files=256 needed=500" in server.log()
    finally:
        server.close()
