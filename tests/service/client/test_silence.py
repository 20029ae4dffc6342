"""A client whose server is not there: what it says, and when."""

import asyncio
import logging
import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from tests.service.process import ServerProcess, free_port
from wolfstream import AsyncClient, Client
from wolfstream.service.client.errors import Unreachable
from wolfstream.service.client.steps import Backoff, Retry, logger

AT_ONCE = 2.0


@pytest.fixture
def nowhere() -> str:
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture
def deaf() -> Iterator[str]:
    """An address where no connection is ever taken."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield f"http://127.0.0.1:{port}"
        for one in waiting:
            one.close()


def warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == logger.name]


class TestFirstContact:
    def test_fails_at_once(self, nowhere: str, caplog: pytest.LogCaptureFixture):
        began = time.monotonic()
        with Client(nowhere) as client, pytest.raises(Unreachable, match="is the server running"):
            client.learn("m", [[1.0]], [1])
        assert time.monotonic() - began < AT_ONCE
        assert warnings(caplog) == []

    def test_fails_soon_where_nobody_answers(self, deaf: str):
        began = time.monotonic()
        with Client(deaf) as client, pytest.raises(Unreachable):
            client.models()
        assert time.monotonic() - began < 2 * AT_ONCE

    def test_of_asyncio_fails_at_once(self, nowhere: str):
        async def ask() -> None:
            async with AsyncClient(nowhere) as client:
                await client.models()

        with pytest.raises(Unreachable):
            asyncio.run(asyncio.wait_for(ask(), AT_ONCE))

    def test_of_a_stream_fails_at_once(self, nowhere: str):
        began = time.monotonic()
        with Client(nowhere) as client, pytest.raises(Unreachable), client.stream("m"):
            pass
        assert time.monotonic() - began < AT_ONCE

    def test_is_waited_for_where_retry_is_given(
        self, nowhere: str, caplog: pytest.LogCaptureFixture
    ):
        began, wall = time.monotonic(), time.time()
        with Client(nowhere, retry=3.0) as client, pytest.raises(Unreachable):
            client.models()
        assert 1.0 < time.monotonic() - began < 3.0 + AT_ONCE
        (warning,) = warnings(caplog)
        assert warning.created - wall < AT_ONCE
        text = warning.getMessage()
        assert f"cannot reach {nowhere}" in text
        (until,) = re.findall(r"trying again until (\d\d:\d\d:\d\d) \(`retry`\)", text)
        seconds = datetime.strptime(until, "%H:%M:%S") - datetime.strptime(
            f"{datetime.fromtimestamp(wall):%H:%M:%S}", "%H:%M:%S"
        )
        assert seconds.seconds in (3, 4)


def test_a_server_that_goes_is_waited_for_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with closing(ServerProcess(tmp_path / "data")) as server:
        server.start()
        with Client(server.url) as client:
            client.models()
            server.kill()
            server.launch()
            assert client.models() == []
    assert len(warnings(caplog)) <= 1
    assert all("trying again until" in one.getMessage() for one in warnings(caplog))


def test_each_outage_is_told_once(caplog: pytest.LogCaptureFixture):
    now = [0.0]
    backoff = Backoff(Retry(60.0), clock=lambda: now[0], chance=lambda: 1.0)
    for outage in (1, 2):
        for _ in range(6):
            now[0] += backoff.pause(Unreachable("cannot reach it")).seconds
        assert len(warnings(caplog)) == outage
        backoff.reset()
