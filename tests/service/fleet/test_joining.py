"""What a replica looks at before it joins: whose directory it has, and who has its address."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.service.fleet.conftest import Replica
from tests.service.fleet.trio import learn, wait_for, wait_for_places
from tests.service.nats import MISSING, NatsServers
from tests.service.specs import PAPERS
from wolfstream.service.errors import StartupError
from wolfstream.service.storage.data_directory import high_water_path, open_storage, side_path

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from wolfstream.service.fleet.opening import Fleet, connect, open_fleet

_BYTES = 8 << 20
EPOCH = "e" * 16


@pytest.fixture
def other(tmp_path: Path) -> Iterator[NatsServers]:
    """The NATS server of another fleet."""
    running = NatsServers(tmp_path / "other").start()
    yield running
    running.close()


@pytest.fixture
def join() -> Iterator[Callable[[NatsServers, Path], Fleet]]:
    """Opens fleets, and closes them in the end."""
    with ExitStack() as stack:

        def opened(servers: NatsServers, data: Path) -> Fleet:
            data.mkdir(exist_ok=True)
            fleet = open_fleet(connect(servers.addresses, _BYTES, _BYTES), data)
            stack.callback(fleet.storage.close)
            return fleet

        yield opened


def made(fleet: Fleet, name: str) -> int:
    """Return the number of a new model."""
    with fleet.storage.catalogue.creating(name, {}, EPOCH) as term:
        return term.model


def test_a_directory_remembers_nothing_of_another_fleet(
    servers: NatsServers,
    other: NatsServers,
    join: Callable[[NatsServers, Path], Fleet],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    data = tmp_path / "data"
    first = join(servers, data)
    first.mark_acknowledged(made(first, "m"), 80)
    first.storage.close()
    side_path(data).write_bytes(b"numbers of the last hours")
    again = join(servers, data)
    number = again.storage.catalogue.find("m").number  # type: ignore[union-attr]
    assert again.high_water.sequence(number) == 80
    again.storage.close()
    with caplog.at_level(logging.WARNING, "wolfstream"):
        elsewhere = join(other, data)
    assert elsewhere.high_water.sequence(number) == 0
    (aside,) = data.glob("aside-*")
    assert f"aside={aside}" in caplog.text
    assert {path.name for path in aside.iterdir()} >= {"high-water", "replays", "monitor.sqlite"}


def test_a_directory_with_models_of_its_own_is_refused(servers: NatsServers, tmp_path: Path):
    data = tmp_path / "embedded"
    data.mkdir()
    open_storage(data).close()
    nats = connect(servers.addresses, _BYTES, _BYTES)
    try:
        with pytest.raises(StartupError, match="wolfstream fleet import"):
            open_fleet(nats, data)
    finally:
        nats.close()
    open_storage(data).close()
    assert high_water_path(data).read_bytes() == b""


def test_single_server_refuses_a_fleets_directory(
    servers: NatsServers, join: Callable[[NatsServers, Path], Fleet], tmp_path: Path
):
    data = tmp_path / "data"
    join(servers, data).storage.close()
    with pytest.raises(StartupError, match="of a fleet"):
        open_storage(data)


def test_second_replica_of_address_waits(
    replica: Callable[..., Replica],
):
    first, third = replica(), replica()
    with ExitStack() as stack:
        clients = [httpx.Client(base_url=one.wait().url, timeout=30) for one in (first, third)]
        wait_for_places([stack.enter_context(client) for client in clients])
    names = [f"named-{number}" for number in range(4)]
    for name in names:
        url = f"{third.url}/v1/models/{name}"
        wait_for(lambda at=url: httpx.put(at, json=PAPERS, timeout=30).is_success)  # type: ignore[misc]
    second = replica(advertise=first.url)
    told = wait_for(lambda: _unready(second, "has the address"))
    assert first.url in told
    with httpx.Client(base_url=third.url, timeout=30) as client:
        terms = _terms(third)
        for name in names:
            assert learn(client, name)["sequence"] == 40
        assert _terms(third) == terms  # nothing was taken over
    assert "another replica has the same address" in second.log()
    first.close()
    wait_for(lambda: httpx.get(f"{second.url}/readyz", timeout=30).is_success)


def _unready(one: Replica, reason: str) -> str | None:
    """Return why a replica is not ready, if it is for this reason."""
    try:
        answer = httpx.get(f"{one.url}/readyz", timeout=30)
    except httpx.TransportError:  # it does not listen yet
        return None
    return answer.text if answer.status_code == 503 and reason in answer.text else None


def _terms(one: Replica) -> dict[str, int]:
    """Return in which terms models are led, as a replica knows."""
    told = httpx.get(f"{one.url}/v1/fleet", timeout=30).json()["replicas"]
    return {name: led["term"] for replica in told for name, led in replica["leads"].items()}
