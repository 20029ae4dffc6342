"""The streams of a fleet: their bounds, and warnings about how servers store them."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.nats import MISSING, NatsServers
from tests.service.process import free_port

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from wolfstream.service.errors import StartupError
from wolfstream.service.fleet import connection as connection_module
from wolfstream.service.fleet.connection import NatsConnection, NatsDisconnected, StreamMessage
from wolfstream.service.fleet.flushing import warn_of_flushing
from wolfstream.service.fleet.streams import (
    STATES,
    grow_streams,
    log_location,
    make_streams,
    with_bound,
)

_BYTES = 8 << 20


@pytest.fixture
def nats(servers: NatsServers) -> Iterator[NatsConnection]:
    connection = NatsConnection(servers.addresses, "test")
    make_streams(connection, _BYTES, _BYTES)
    yield connection
    connection.close()


def bounds(nats: NatsConnection) -> list[int]:
    names = [*(log_location(number)[0] for number in range(8)), STATES]
    told = [nats.run(nats.call(f"STREAM.INFO.{name}", {}), 10) for name in names]
    return [one["config"]["max_bytes"] for one in told]


def test_streams_grow_and_never_shrink(nats: NatsConnection):
    assert bounds(nats) == [1 << 20] * 8 + [_BYTES]
    grow_streams(nats, 2 * _BYTES, _BYTES // 2)
    assert bounds(nats) == [2 << 20] * 8 + [_BYTES]
    grow_streams(nats, _BYTES, _BYTES)
    assert bounds(nats) == [2 << 20] * 8 + [_BYTES]


def test_a_bound_that_a_replica_left_raised_is_put_back(nats: NatsConnection):
    before, stream = bounds(nats), log_location(0)[0]

    config = nats.run(nats.call(f"STREAM.INFO.{stream}", {}), 10)["config"]
    left = with_bound(config, before[0], before[0] + 1)
    nats.run(nats.call(f"STREAM.UPDATE.{stream}", left), 10)
    assert bounds(nats)[0] == before[0] + 1
    grow_streams(nats, 8, 8)
    assert bounds(nats) == before


def test_a_bound_that_cannot_be_raised_stays(
    nats: NatsConnection, caplog: pytest.LogCaptureFixture
):
    before = bounds(nats)
    grow_streams(nats, 1 << 50, _BYTES)
    assert bounds(nats) == before
    assert "keeps its bound" in caplog.text


class TestFlushing:
    def test_that_leaves_something_for_later_is_warned_of(
        self, servers: NatsServers, caplog: pytest.LogCaptureFixture
    ):
        warn_of_flushing(servers.monitors)
        assert "flushes its files every 120 s" in caplog.text

    def test_of_each_message_is_fine(self, tmp_path: Path, caplog: pytest.LogCaptureFixture):
        servers = NatsServers(tmp_path, sync=True).start()
        try:
            with caplog.at_level(logging.WARNING, "wolfstream"):
                warn_of_flushing(servers.monitors)
            assert caplog.text == ""
        finally:
            servers.close()

    def test_that_nobody_tells_of_is_warned_of(self, caplog: pytest.LogCaptureFixture):
        warn_of_flushing([f"http://127.0.0.1:{free_port()}"])
        assert "does not tell how" in caplog.text


def test_a_connection_that_was_closed_says_so(servers: NatsServers):
    """To whoever still uses it on another thread while the server stops."""
    connection = NatsConnection(servers.addresses, "test")
    connection.close()
    with pytest.raises(NatsDisconnected, match="is closed"):
        connection.run(connection.call(f"STREAM.INFO.{STATES}", {}), 10)


def test_a_password_that_no_server_takes_is_named_at_once(tmp_path: Path):
    known = "authorization { user: a, password: right }"
    servers = NatsServers(tmp_path, more=known).start()
    (port,) = servers.ports
    began = time.monotonic()
    try:
        with pytest.raises(StartupError, match=r"Authorization Violation.*the user and the pass"):
            NatsConnection([f"nats://a:wrong@127.0.0.1:{port}"], "test")
        assert time.monotonic() < began + 15
        NatsConnection([f"nats://a:right@127.0.0.1:{port}"], "test").close()
    finally:
        servers.close()


@pytest.mark.parametrize("most", [1, 5])
def test_what_no_copy_answers_is_read_from_the_leader(
    servers: NatsServers, most: int, monkeypatch: pytest.MonkeyPatch
):
    """As while a server is stopped: the others pass reads on to it until they close its routes."""
    monkeypatch.setattr(connection_module, "_COPY_SECONDS", 1.0)
    connection = NatsConnection(servers.addresses, "test")
    stream, subject = f"SILENT_{most}", f"silent.{most}"
    try:
        connection.run(_make_silent(connection, stream, subject), 10)
        request = {"seq": 1, "next_by_subj": subject, "batch": most, "max_bytes": 1000}
        for seconds in (20, 0.9):  # it is remembered that the copies are silent
            found = connection.run(connection.get(stream, request, most), seconds)
            assert found == [StreamMessage(1, subject, b"one")]
        assert connection.run(connection.get(stream, {**request, "seq": 3}, most), 1) == []
        last = connection.run(connection.last(stream, subject), 1)
        assert last == StreamMessage(2, subject, b"two")
    finally:
        connection.close()


async def _make_silent(connection: NatsConnection, stream: str, subject: str) -> None:
    """Make a stream with two messages, whose reads reach somebody who does not answer."""
    settings = {"name": stream, "subjects": [subject], "storage": "file", "retention": "limits"}
    await connection.call(f"STREAM.CREATE.{stream}", {**settings, "num_replicas": 1})
    for body in (b"one", b"two"):
        await connection.ask(subject, body)

    async def ignore(_: object) -> None:
        pass

    await connection.client.subscribe(f"$JS.API.DIRECT.GET.{stream}", cb=ignore)
