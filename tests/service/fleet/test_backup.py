"""Backups of a fleet: made while it learns, restored at any point, and brought into another one."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from tests.service.fleet.conftest import LoneReplica
from tests.service.fleet.test_one_replica import call
from tests.service.fleet.trio import wait_for
from tests.service.nats import MISSING, NatsServers
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from wolfstream.service.access.keys import add_key
from wolfstream.service.cli.main import main
from wolfstream.service.fleet.chain import Chain
from wolfstream.service.storage.log import LogGap

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from wolfstream.service.fleet.opening import keys_at

SPEC = PAPERS | {"working_set": {"max_size": 50}, "asset": None}
PROBE = {"x": [[i % 7, i % 5] for i in range(20)]}


class OneReplica:
    """A fleet of one replica, with a key, and a model that learns five samples a request."""

    def __init__(self, folder: Path) -> None:
        self.servers = NatsServers(folder / "nats").start()
        self.url = ",".join(self.servers.addresses)
        with keys_at(self.servers.addresses) as keys:
            self.headers = {"Authorization": f"Bearer {add_key(keys, 'ops', ('admin',))}"}
        self.replica = LoneReplica(folder / "replica", self.servers, snapshot_samples=50)
        self.replica.start()
        self.model = f"{self.replica.url}/v1/models/m"

    def begin(self) -> "OneReplica":
        call(self.model, "PUT", json=SPEC, headers=self.headers)
        return self

    def learn(self, number: int) -> Any:
        return call(f"{self.model}/samples", json=body(number), headers=self.sent(number))

    def sent(self, number: int) -> dict[str, str]:
        return self.headers | {"Idempotency-Key": f"key-{number}"}

    def predicted(self) -> Any:
        return call(f"{self.model}/predict", json=PROBE, headers=self.headers)

    def close(self) -> None:
        self.replica.close()
        self.servers.close()


def body(number: int) -> dict[str, Any]:
    x = [[(number * i) % 7, (number + i) % 5] for i in range(5)]
    return {"x": x, "y": [(row[0] + row[1]) % 2 for row in x]}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[OneReplica]:
    one = OneReplica(tmp_path)
    yield one.begin()
    one.close()


def run(*arguments: object) -> str:
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def newest(directory: Path) -> int:
    (model,) = json.loads((directory / "backup.json").read_text())["models"]
    return int(model["newest"])


def test_it_is_whole_though_the_fleet_learns_meanwhile(fleet: OneReplica, tmp_path: Path):
    learned, ended = list[int](), threading.Event()

    def learn() -> None:
        while not ended.is_set():
            learned.append(fleet.learn(len(learned))["sequence"])

    learning = threading.Thread(target=learn)
    learning.start()
    try:
        wait_for(lambda: len(learned) > 50)  # some snapshots were made, and the log was purged
        before = learned[-1]
        run("backup", "--fleet", fleet.url, tmp_path / "backup")
    finally:
        ended.set()
        learning.join()
    end = newest(tmp_path / "backup")
    assert before <= end <= learned[-1]
    run("restore", "--data", tmp_path / "restored", tmp_path / "backup")
    embedded = ServerProcess(tmp_path / "restored").start()
    try:
        url, last = f"{embedded.url}/v1/models/m", end // 5 - 1
        assert httpx.get(url).status_code == 401
        again = call(f"{url}/samples", json=body(last), headers=fleet.sent(last))
        assert again["sequence"] == end
        following = call(f"{url}/samples", json=body(last + 1), headers=fleet.headers)
        assert following["sequence"] == end + 5
    finally:
        embedded.close()


def test_it_reads_a_log_anew_that_was_purged_meanwhile(
    fleet: OneReplica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for number in range(2):  # the answer of the first is written with the second
        fleet.learn(number)
    left = dict[str, int]()

    def is_late_once(name: str) -> None:
        """Let messages have gone before they are read, once."""
        method = getattr(Chain, name)

        def late(chain: Chain, *given: Any) -> Any:
            if left.setdefault(name, 1):
                left[name] = 0
                raise LogGap("the log has a gap")
            return method(chain, *given)

        monkeypatch.setattr(Chain, name, late)

    for name in ("read_on", "commit_at"):
        is_late_once(name)
    run("fleet", "verify", "--fleet", fleet.url)
    left.clear()
    run("backup", "--fleet", fleet.url, tmp_path / "backup")
    assert left == {"read_on": 0, "commit_at": 0}
    assert newest(tmp_path / "backup") == 10


def test_another_fleet_goes_on_from_it(fleet: OneReplica, tmp_path: Path):
    for number in range(25):
        fleet.learn(number)
    before = fleet.predicted()
    run("backup", "--fleet", fleet.url, tmp_path / "backup")
    run("restore", "--data", tmp_path / "restored", tmp_path / "backup")
    servers = NatsServers(tmp_path / "nats of another").start()
    other = LoneReplica(tmp_path / "another", servers)
    try:
        run("fleet", "import", tmp_path / "restored", "--fleet", ",".join(servers.addresses))
        other.start()
        url = f"{other.url}/v1/models/m"
        after = call(f"{url}/predict", json=PROBE, headers=fleet.headers)
        assert (after["decision"], after["sequence"]) == (before["decision"], 125)
        again = call(f"{url}/samples", json=body(24), headers=fleet.sent(24))
        assert again["sequence"] == 125
    finally:
        other.close()
        servers.close()


def test_it_can_be_restored_at_a_sequence_and_at_a_time(fleet: OneReplica, tmp_path: Path):
    for number in range(4):
        fleet.learn(number)
    before, then = fleet.predicted(), datetime.now(UTC)
    while datetime.now(UTC) - then < timedelta(milliseconds=2):  # entries have milliseconds
        pass
    for number in range(4, 8):
        fleet.learn(number)
    run("backup", "--fleet", fleet.url, tmp_path / "backup")
    at_sequence = run("restore", "--data", tmp_path / "15", tmp_path / "backup", "--to", "m@15")
    assert "m at sequence 15, back to 0" in at_sequence
    at_time = run(
        "restore", "--data", tmp_path / "20", tmp_path / "backup", "--to", then.isoformat()
    )
    assert "m at sequence 20, back to 0" in at_time
    embedded = ServerProcess(tmp_path / "20").start()
    try:
        after = call(f"{embedded.url}/v1/models/m/predict", json=PROBE, headers=fleet.headers)
        assert after["decision"] == before["decision"]
    finally:
        embedded.close()


def test_where_something_is_none_is_made(fleet: OneReplica, tmp_path: Path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("kept")
    refused = CliRunner().invoke(main, ["backup", "--fleet", fleet.url, str(tmp_path / "there")])
    assert refused.exit_code == 1
    assert "is not empty" in refused.output
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["file"]
