"""Fixtures: a real server for a test module, a model name, failing system calls, and an engine."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.process import ServerProcess
from tests.service.syscalls.library import SystemCalls, build_library
from tests.service.writer_bench import Bench


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that the tests of one module share."""
    running = ServerProcess(tmp_path_factory.mktemp("server") / "data").start()
    yield running
    running.close()


@pytest.fixture
def client(server: ServerProcess) -> Iterator[httpx.Client]:
    """HTTP on the shared server."""
    with httpx.Client(base_url=server.url, timeout=30) as http:
        yield http


@pytest.fixture
def name() -> str:
    """A model name that no other test uses."""
    return f"m{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def system_calls() -> SystemCalls:
    """The system calls of this process, which fail where a test says so."""
    library = build_library()
    if library is None:
        pytest.skip("there is no compiler of C here: install gcc")
    return SystemCalls(library)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """An engine over a new data directory, without a server."""
    bench = Bench(tmp_path / "data")
    yield bench
    bench.close()
