"""Fleets of real replicas over real NATS servers."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.web.layers import forwarding
from tests.service.nats import MISSING, NatsServers
from tests.service.process import ServerProcess


class Replica(ServerProcess):
    """`wolfstream serve --fleet`, reached by the others where its clients reach it."""

    def __init__(self, data: Path, servers: NatsServers, **settings: object) -> None:
        super().__init__(data, **settings)
        self.settings |= {"fleet": ",".join(servers.addresses), "advertise": self.url}


def look_for_leaders_for_long() -> None:
    """Let a replica of a busy machine find a model's leader before it refuses a call."""
    forwarding._PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServers]:
    """One NATS server, which the tests of a module share."""
    if MISSING:
        pytest.skip(MISSING)
    running = NatsServers(tmp_path_factory.mktemp("nats")).start()
    yield running
    running.close()


@pytest.fixture
def replica(servers: NatsServers, tmp_path: Path) -> Iterator[Callable[..., Replica]]:
    """Starts replicas, each with a directory of its own."""
    started = list[Replica]()

    def start(**settings: object) -> Replica:
        one = Replica(tmp_path / f"replica-{len(started)}", servers, **settings)
        started.append(one)
        one.launch()
        return one

    yield start
    for one in started:
        one.close()
