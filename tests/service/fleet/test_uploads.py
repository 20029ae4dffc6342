"""Uploads that are brought into a fleet and out of it: their logs begin after what they had."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.nats import MISSING, NatsServers
from tests.service.specs import read_papers_spec
from tests.service.writer_bench import Bench
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.model_files import load_content
from wolfstream.service.storage.snapshot_format import State, UnreadableSnapshot, encode_state

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from tests.service.fleet.test_log import Replica
from tests.service.fleet.writers import SAMPLES, SPEC, Server
from tests.service.streams import part
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.fleet.exporting import export_models
from wolfstream.service.fleet.importing import MoveError, import_models
from wolfstream.service.fleet.opening import Fleet, connect, open_fleet

_BYTES = 64 << 20


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[NatsServers]:
    running = NatsServers(tmp_path / "nats").start()
    yield running
    running.close()


@pytest.fixture
def fleet(servers: NatsServers, tmp_path: Path) -> Iterator[Fleet]:
    (tmp_path / "fleet").mkdir()
    opened = open_fleet(connect(servers.addresses, _BYTES, _BYTES), tmp_path / "fleet")
    yield opened
    opened.storage.close()


@pytest.fixture
def replica(servers: NatsServers, tmp_path: Path) -> Iterator[Server]:
    server = Server(Replica(servers, tmp_path / "a"), tmp_path / "a")
    yield server
    server.close()


def test_imported_one_learns_on(fleet: Fleet, replica: Server, tmp_path: Path) -> None:
    learner = Learner(Model(0, "", read_papers_spec(SPEC)))
    learner.absorb("asset", part(SAMPLES, 0, 15))
    content = b"".join(encode_state(State(*learner.state())))
    bench = Bench(tmp_path / "data")
    bench.writer.new_models.add("m", load_content(content, "it"))
    bench.close()
    (moved,) = import_models(tmp_path / "data", fleet, KeyFile(tmp_path))
    assert moved.sequence == 15
    model = replica.lead("m")
    assert replica.learn("m")["sequence"] == 16
    assert replica.replica.journal.reader(model.id).faults == []


def test_exported_one_has_what_it_was_uploaded_with(
    fleet: Fleet, replica: Server, tmp_path: Path
) -> None:
    replica.upload("m", 15)
    (moved,) = export_models(fleet, tmp_path / "data")
    assert moved.sequence == 15
    bench = Bench(tmp_path / "data")
    (model,) = bench.writer.models.all()
    assert model.published.sequence == 15
    bench.close()


def test_without_its_snapshot_it_is_not_exported_as_an_empty_model(
    fleet: Fleet, replica: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica.upload("m", 15)

    def unreadable(_model: int, _sequence: int) -> State:
        raise UnreadableSnapshot("it", "cannot be read")

    monkeypatch.setattr(fleet.storage.snapshots, "load", unreadable)
    with pytest.raises(MoveError, match="'m'"):
        list(export_models(fleet, tmp_path / "data"))
