"""Data directories that are brought into a fleet a second time, after a first time failed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.service.fleet.test_one_replica import X, Y, call
from tests.service.nats import MISSING, NatsServers
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from wolfstream.service.cli.main import main

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from wolfstream.service.fleet.opening import Fleet, connect, open_fleet
from wolfstream.service.fleet.streams import STATES

_BYTES = 64 << 20


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with three models, of which the second was rolled back, and a challenger."""
    one = ServerProcess(tmp_path_factory.mktemp("embedded") / "data").start()
    try:
        for name in ("first", "second", "third"):
            url = f"{one.url}/v1/models/{name}"
            call(url, "PUT", json=PAPERS)
            call(f"{url}/samples", json={"x": X, "y": Y})
            if name == "first":
                call(f"{url}-b", "PUT", json=PAPERS | {"follows": name, "seed": 7})
            if name == "second":
                call(f"{url}/snapshot")
                call(f"{url}/samples", json={"x": X, "y": Y})
                call(f"{url}/rollback", json={"sequence": 40})
    finally:
        one.kill()
    return one.data


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[NatsServers]:
    servers = NatsServers(tmp_path / "nats").start()
    yield servers
    servers.close()


def brought_in(data: Path, servers: NatsServers) -> Result:
    return CliRunner().invoke(
        main, ["fleet", "import", str(data), "--fleet", ",".join(servers.addresses)]
    )


@contextmanager
def opened(servers: NatsServers, data: Path) -> Iterator[Fleet]:
    fleet = open_fleet(connect(servers.addresses, _BYTES, _BYTES), data)
    try:
        yield fleet
    finally:
        fleet.storage.close()


def _models_with_data(fleet: Fleet) -> set[int]:
    """Return the numbers of models of which something is stored beside the logs."""
    asked = {"subjects_filter": "wolfstream.states.>"}
    found = fleet.nats.run(fleet.nats.call(f"STREAM.INFO.{STATES}", asked), 10)
    return {int(subject.split(".")[2]) for subject in found["state"].get("subjects") or ()}


@contextmanager
def without_the_state_of_a_rollback(data: Path) -> Iterator[None]:
    (pinned,) = data.glob("snapshots/*/*.pinned")
    hidden = pinned.rename(pinned.with_suffix(".hidden"))
    try:
        yield
    finally:
        hidden.rename(pinned)


def test_one_that_failed_half_way_goes_on(embedded: Path, fleet: NatsServers, tmp_path: Path):
    with without_the_state_of_a_rollback(embedded):
        failed = brought_in(embedded, fleet)
    assert failed.exit_code == 1
    assert failed.output.startswith("first: 40 samples\nfirst-b: 40 samples\nError: ")
    assert "model 'second' is not moved" in failed.output
    data = tmp_path / "data"
    data.mkdir()
    with opened(fleet, data) as there:
        before = there.storage.catalogue.models()
        assert [entry.name for entry in before] == ["first", "first-b"]
        assert _models_with_data(there) <= {entry.number for entry in before}
    again = brought_in(embedded, fleet)
    assert again.exit_code == 0, again.output
    assert again.output.splitlines() == [
        "first: the fleet has it already, with 40 samples",
        "first-b: the fleet has it already, with 40 samples",
        "second: 80 samples",
        "third: 40 samples",
    ]
    with opened(fleet, data) as there:
        models = {entry.name: entry for entry in there.storage.catalogue.models()}
        assert [models["first"], models["first-b"]] == before
        assert there.storage.journal.reader(models["second"].number).end() == 80
    third = brought_in(embedded, fleet)
    assert third.exit_code == 1
    assert "the fleet has models of these names already: first, " in third.output


def test_a_model_that_has_learned_more_in_the_directory_is_named(
    embedded: Path, fleet: NatsServers
):
    with without_the_state_of_a_rollback(embedded):
        assert brought_in(embedded, fleet).exit_code == 1
    longer = ServerProcess(embedded)
    longer.start()
    try:
        call(f"{longer.url}/v1/models/first/samples", json={"x": X[:5], "y": Y[:5]})
    finally:
        longer.kill()
    refused = brought_in(embedded, fleet)
    assert refused.exit_code == 1
    assert "'first' has 45 samples in the directory, and 40 in the fleet" in refused.output
