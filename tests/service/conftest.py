"""Fixtures: one real server for a test module, and a fresh model name for a test."""

import uuid
from collections.abc import Iterator

import httpx
import pytest

from tests.service.process import ServerProcess


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
