"""Fleets of real replicas over real NATS servers."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.service.fleet.trio import Trio, call, wait_for_places
from tests.service.nats import MISSING, NatsServers
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from wolfstream.service.web.transport import forwarding


class Replica(ServerProcess):
    """`wolfstream serve --fleet`, reached by the others where its clients reach it."""

    def __init__(self, data: Path, servers: NatsServers, **settings: object) -> None:
        super().__init__(data, **settings)
        self.settings = {
            "fleet": ",".join(servers.addresses),
            "advertise": self.url,
            **self.settings,
        }


def look_for_others_briefly() -> None:
    """Let a replica that has no others be ready in a fifth of a second, not in a whole one."""
    from wolfstream.service.cluster import members

    members.BEAT_SECONDS, members._LISTEN_SECONDS = 0.1, 0.15


class LoneReplica(Replica):
    """The only replica of a fleet."""

    def __init__(self, data: Path, servers: NatsServers, **settings: object) -> None:
        super().__init__(data, servers, **settings)
        self.prelude = look_for_others_briefly


def look_for_leaders_for_long() -> None:
    """Let a replica of a busy machine find a model's leader before it refuses a call."""
    forwarding._LEADER_TIMEOUT_SECONDS = 60.0


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

    def start(kind: type[Replica] = Replica, **settings: object) -> Replica:
        one = kind(tmp_path / f"replica-{len(started)}", servers, **settings)
        started.append(one)
        one.launch()
        return one

    yield start
    for one in started:
        one.close()


@pytest.fixture(scope="package")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Three replicas, which the tests of all modules share."""
    if MISSING:
        pytest.skip(MISSING)
    folder = tmp_path_factory.mktemp("replicas")
    servers = NatsServers(folder / "nats").start()
    replicas = [Replica(folder / str(number), servers) for number in range(3)]
    for one in replicas:
        one.prelude = look_for_leaders_for_long
        one.launch()
    for one in replicas:
        one.wait()
    together = Trio(replicas)
    wait_for_places(together.clients)
    yield together
    for client in together.clients:
        client.close()
    for one in replicas:
        one.close()
    servers.close()


@pytest.fixture
def name(trio: Trio) -> str:
    """A model, which was made through some replica."""
    made = f"a..{uuid.uuid4().hex[:8]}"
    call(trio.clients[1], "PUT", f"/v1/models/{made}", json=PAPERS)
    return made
