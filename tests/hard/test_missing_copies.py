"""What docs/runbook.md says of NATS servers that are lost, replaced, or store nothing."""

import asyncio
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.service.nats import MISSING, NatsServers

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from wolfstream.service.cluster.quorum import Quorum
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.streams import STREAMS, make_streams

pytestmark = pytest.mark.hard
LOST = 1
_BYTES = 64 << 20


def test_they_are_told_for_as_long_as_they_are_missing(tmp_path: Path):
    with closing(NatsServers(tmp_path, 3)) as servers:
        servers.start()
        # Of the servers that stay; one of them is not replaced while another one is.
        with closing(NatsConnection(servers.addresses[::2], "test")) as nats:
            make_streams(nats, _BYTES, _BYTES)
            quorum = Quorum(nats, 10.0)
            asyncio.run_coroutine_threadsafe(quorum.run(), nats.loop)

            def missing(copies: int) -> bool:
                states = quorum.streams
                return {one.missing_copies for one in states.values()} == {copies} and [
                    *sorted(states)
                ] == sorted(STREAMS)

            until(lambda: missing(0))
            servers.kill(LOST)
            until(lambda: missing(1))
            start_without_jetstream(servers)
            time.sleep(15.0)
            assert missing(1)
            nats.run(nats.ask("wolfstream.log.0.8", b"x"), 10)  # two copies of three are enough
            servers.kill(LOST)
            shutil.rmtree(tmp_path / str(LOST))
            servers.start_one(LOST)
            until(lambda: missing(0))


def start_without_jetstream(servers: NatsServers) -> None:
    """Start the server that is lost with settings that lack JetStream."""
    settings = servers._settings
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            servers, "_settings", lambda number: settings(number).replace("jetstream {", "# {")
        )
        servers.start_one(LOST)


def until(look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.1)
