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
from wolfstream.service.client import first_answer
from wolfstream.service.client.errors import AnswerLost, ClientError, Unreachable
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


@pytest.fixture
def mute() -> Iterator[str]:
    """An address that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


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


class TestMuteServer:
    @pytest.fixture(autouse=True)
    def _silence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(first_answer, "_SILENT_SECONDS", 0.5)

    def told(self, caplog: pytest.LogCaptureFixture, began: float) -> str:
        (warning,) = [each for each in caplog.records if each.name == first_answer.logger.name]
        assert warning.created - began < AT_ONCE
        return warning.getMessage()

    def test_is_reported_soon(self, mute: str, caplog: pytest.LogCaptureFixture):
        began = time.time()
        with Client(mute, timeout=1.0, retry=0.1) as client, pytest.raises(AnswerLost):
            client.models()
        assert f"{mute} has not answered" in self.told(caplog, began)

    def test_is_reported_once_to_calls_of_asyncio(
        self, mute: str, caplog: pytest.LogCaptureFixture
    ):
        async def ask() -> None:
            async with AsyncClient(mute, timeout=1.0, retry=0.1) as client:
                await asyncio.gather(client.models(), client.models())

        began = time.time()
        with pytest.raises(AnswerLost):
            asyncio.run(ask())
        assert "waiting until" in self.told(caplog, began)

    def test_is_reported_where_a_stream_is_opened(
        self, mute: str, caplog: pytest.LogCaptureFixture
    ):
        began = time.time()
        client = Client(mute, timeout=1.0, retry=0.1)
        with client, pytest.raises(ClientError), client.stream("m"):
            pass
        assert "waiting until" in self.told(caplog, began)


def test_a_server_that_answers_is_waited_for_in_silence(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(first_answer, "_SILENT_SECONDS", 0.01)
    awaited = first_answer.FirstAnswer("http://there", 1.0)
    with awaited.awaited():
        pass
    with awaited.awaited():
        time.sleep(0.05)
    assert not caplog.records


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
