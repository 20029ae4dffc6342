"""One replica: what it acknowledged is in the fleet's streams, so its directory may be lost."""

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from tests.service.fleet.conftest import LoneReplica, Replica
from tests.service.fleet.trio import wait_for
from tests.service.nats import NatsServers
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from wolfstream.service.cli.main import main
from wolfstream.service.storage.high_water import HighWater

X = [[i % 7, i % 5] for i in range(40)]
Y = [i % 2 for i in range(40)]


@pytest.fixture(scope="module")
def replica(servers: NatsServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    one = LoneReplica(tmp_path_factory.mktemp("replica") / "data", servers)
    one.start()
    yield one
    one.close()


def call(url: str, method: str = "POST", **request: Any) -> Any:
    """Return the answer to a call, which comes once the replica knows that it is alone."""
    deadline = time.monotonic() + 60
    while (answer := httpx.request(method, url, timeout=30, **request)).status_code == 503:
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.05)
    assert answer.is_success, answer.text
    return answer.json()


def lose_all_but_the_fleet(replica: Replica) -> None:
    """Kill it, and start it with an empty directory."""
    replica.kill()
    shutil.rmtree(replica.data)
    replica.start()


def test_goes_on_from_the_log_alone(replica: Replica):
    url = f"{replica.url}/v1/models/goes-on"
    call(url, "PUT", json=PAPERS)
    key = {"Idempotency-Key": "k"}
    first = call(f"{url}/samples", json={"x": X, "y": Y}, headers=key)
    assert call(f"{url}/snapshot")["sequence"] == 40
    call(f"{url}/samples", json={"x": X, "y": Y})
    before = call(f"{url}/predict", json={"x": X})
    lose_all_but_the_fleet(replica)
    after = call(f"{url}/predict", json={"x": X})
    assert after["decision"] == before["decision"]
    again = call(f"{url}/samples", json={"x": X, "y": Y}, headers=key)
    assert again["results"] == first["results"]
    assert call(f"{url}/samples", json={"x": X, "y": Y})["sequence"] == 120
    assert [one["sequence"] for one in call(f"{url}/history", "GET")["snapshots"]] == [40]


def test_a_log_that_has_lost_its_end_takes_no_samples(replica: Replica):
    url = f"{replica.url}/v1/models/lost-end"
    call(url, "PUT", json=PAPERS)
    call(f"{url}/samples", json={"x": X, "y": Y})
    told = httpx.get(f"{replica.url}/v1/fleet").json()["replicas"][0]
    number = told["leads"]["lost-end"]["number"]
    replica.kill()
    with closing(HighWater(replica.data / "high-water")) as heard:
        heard.mark(number, 41)
    replica.start()
    answer = httpx.post(f"{url}/samples", json={"x": X, "y": Y}, timeout=30)
    assert answer.status_code == 503
    assert "41 samples were acknowledged" in answer.json()["detail"]


def test_a_rollback_stays_one(replica: Replica):
    url = f"{replica.url}/v1/models/rollback"
    call(url, "PUT", json=PAPERS)
    call(f"{url}/samples", json={"x": X, "y": Y})
    before = call(f"{url}/predict", json={"x": X})
    call(f"{url}/snapshot")
    call(f"{url}/samples", json={"x": X, "y": [1 - y for y in Y]})
    assert call(f"{url}/rollback", json={"sequence": 40})["sequence"] == 80
    lose_all_but_the_fleet(replica)
    after = call(f"{url}/predict", json={"x": X})
    assert (after["decision"], after["sequence"]) == (before["decision"], 80)


def test_a_directory_is_brought_in_with_its_sequences_and_keys(
    replica: Replica, servers: NatsServers, tmp_path: Path
):
    embedded = ServerProcess(tmp_path / "embedded")
    embedded.start()
    url = f"{embedded.url}/v1/models/moved"
    try:
        call(url, "PUT", json=PAPERS)
        key = {"Idempotency-Key": "k"}
        first = call(f"{url}/samples", json={"x": X, "y": Y}, headers=key)
        call(f"{url}/snapshot")
        call(f"{url}/samples", json={"x": X, "y": Y})
        call(f"{url}/rollback", json={"sequence": 40})
        call(f"{url}/samples", json={"x": X[:7], "y": Y[:7]})
        before = call(f"{url}/predict", json={"x": X})
    finally:
        embedded.kill()
    moving = ["fleet", "import", str(embedded.data), "--fleet", ",".join(servers.addresses)]
    told = CliRunner().invoke(main, moving)
    assert told.output == "moved: 87 samples\n"
    url = f"{replica.url}/v1/models/moved"
    after = call(f"{url}/predict", json={"x": X})
    assert (after["decision"], after["sequence"]) == (before["decision"], 87)
    again = call(f"{url}/samples", json={"x": X, "y": Y}, headers=key)
    assert (again["sequence"], again["results"]) == (40, first["results"])
    assert call(f"{url}/samples", json={"x": X, "y": Y})["sequence"] == 127
    refused = CliRunner().invoke(main, moving)
    assert refused.exit_code == 1
    assert "the fleet has models of these names already: moved" in refused.output


def test_import_needs_last_rollback_states_only(
    replica: Replica, servers: NatsServers, tmp_path: Path
):
    embedded = ServerProcess(tmp_path / "embedded")
    embedded.start()
    url = f"{embedded.url}/v1/models/back"
    try:
        call(url, "PUT", json=PAPERS)
        for _ in range(4):
            call(f"{url}/samples", json={"x": X[:10], "y": Y[:10]})
            call(f"{url}/snapshot")
        for sequence in (10, 20, 30, 40):
            call(f"{url}/rollback", json={"sequence": sequence})
            call(f"{url}/samples", json={"x": X[:5], "y": Y[:5]})
        call(f"{url}/snapshot")
        call(f"{url}/rollback", json={"sequence": 60})
        call(f"{url}/samples", json={"x": X[:7], "y": Y[:7]})
        before = call(f"{url}/predict", json={"x": X})
    finally:
        embedded.kill()
    moving = ["fleet", "import", str(embedded.data), "--fleet", ",".join(servers.addresses)]
    told = CliRunner().invoke(main, moving)
    assert told.exit_code == 0, told.output
    after = call(f"{replica.url}/v1/models/back/predict", json={"x": X})
    assert (after["decision"], after["sequence"]) == (before["decision"], before["sequence"])


def test_import_without_last_rollback_refused(servers: NatsServers, tmp_path: Path):
    embedded = ServerProcess(tmp_path / "embedded")
    embedded.start()
    url = f"{embedded.url}/v1/models/lost"
    try:
        call(url, "PUT", json=PAPERS)
        call(f"{url}/samples", json={"x": X, "y": Y})
        call(f"{url}/snapshot")
        call(f"{url}/samples", json={"x": X, "y": Y})
        call(f"{url}/rollback", json={"sequence": 40})
    finally:
        embedded.kill()
    (pinned,) = embedded.data.glob("snapshots/*/*.pinned")
    pinned.unlink()
    moving = ["fleet", "import", str(embedded.data), "--fleet", ",".join(servers.addresses)]
    told = CliRunner().invoke(main, moving)
    assert told.exit_code == 1
    assert "model 'lost' is not moved" in told.output


def test_exported_fleet_is_served_from_its_directory(
    replica: Replica, servers: NatsServers, tmp_path: Path
):
    url = f"{replica.url}/v1/models/copied"
    call(url, "PUT", json=PAPERS)
    key = {"Idempotency-Key": "k"}
    first = call(f"{url}/samples", json={"x": X, "y": Y}, headers=key)
    call(f"{url}/snapshot")
    call(f"{url}/samples", json={"x": X, "y": [1 - y for y in Y]})
    call(f"{url}/rollback", json={"sequence": 40})
    call(f"{url}/samples", json={"x": X[:7], "y": Y[:7]})
    before = call(f"{url}/predict", json={"x": X})
    copying = ["fleet", "export", str(tmp_path / "copy"), "--fleet", ",".join(servers.addresses)]
    told = CliRunner().invoke(main, copying)
    assert "copied: 87 samples\n" in told.output
    assert CliRunner().invoke(main, copying).exit_code == 1
    embedded = ServerProcess(tmp_path / "copy")
    embedded.start()
    try:
        url = f"{embedded.url}/v1/models/copied"
        after = call(f"{url}/predict", json={"x": X})
        assert (after["decision"], after["sequence"]) == (before["decision"], 87)
        again = call(f"{url}/samples", json={"x": X, "y": Y}, headers=key)
        assert (again["sequence"], again["results"]) == (40, first["results"])
    finally:
        embedded.close()


def make_pair(url: str) -> None:
    """Make a champion and its challenger, which have changed places and learned since."""
    call(url, "PUT", json=PAPERS)
    call(f"{url}-b", "PUT", json=PAPERS | {"follows": url.rpartition("/")[2], "seed": 7})
    for y in (Y, Y[::-1]):
        call(f"{url}/samples", json={"x": X, "y": y})
    call(f"{url}/promote", json={"model": f"{url.rpartition('/')[2]}-b"})
    call(f"{url}/samples", json={"x": X[:7], "y": Y[:7]})


def told_by_pair(url: str, sequence: int) -> list[Any]:
    """The predictions of a champion and its challenger of a sequence."""
    asked = f"min_sequence={sequence}"
    answers = [call(f"{at}/predict?{asked}", json={"x": X}) for at in (url, f"{url}-b")]
    assert [answer["sequence"] for answer in answers] == [sequence] * 2
    return [answer["decision"] for answer in answers]


def test_challenger_continues_from_logs_alone(replica: Replica):
    url = f"{replica.url}/v1/models/alone"
    make_pair(url)
    before = told_by_pair(url, 87)
    lose_all_but_the_fleet(replica)
    assert told_by_pair(url, 87) == before
    assert call(f"{url}-b", "GET")["follows"]["model"] == "alone"
    assert httpx.delete(url, timeout=30).status_code == 204
    lose_all_but_the_fleet(replica)
    free = call(f"{url}-b/predict?min_sequence=87", json={"x": X})
    assert free["decision"] == before[1]
    assert call(f"{url}-b/samples", json={"x": X, "y": Y})["sequence"] == 127


def test_a_challenger_is_brought_in_with_its_champion(
    replica: Replica, servers: NatsServers, tmp_path: Path
):
    embedded = ServerProcess(tmp_path / "embedded").start()
    try:
        make_pair(f"{embedded.url}/v1/models/in")
        before = told_by_pair(f"{embedded.url}/v1/models/in", 87)
    finally:
        embedded.kill()
    moving = ["fleet", "import", str(embedded.data), "--fleet", ",".join(servers.addresses)]
    told = CliRunner().invoke(main, moving)
    assert told.exit_code == 0, told.output
    url = f"{replica.url}/v1/models/in"
    assert told_by_pair(url, 87) == before
    call(f"{url}/samples", json={"x": X, "y": Y})
    told_by_pair(url, 127)


def test_a_challenger_is_copied_with_its_champion(
    replica: Replica, servers: NatsServers, tmp_path: Path
):
    make_pair(f"{replica.url}/v1/models/out")
    before = told_by_pair(f"{replica.url}/v1/models/out", 87)
    copying = ["fleet", "export", str(tmp_path / "out"), "--fleet", ",".join(servers.addresses)]
    told = CliRunner().invoke(main, copying)
    assert told.exit_code == 0, told.output
    embedded = ServerProcess(tmp_path / "out").start()
    try:
        url = f"{embedded.url}/v1/models/out"
        assert told_by_pair(url, 87) == before
        call(f"{url}/samples", json={"x": X, "y": Y})
        told_by_pair(url, 127)
    finally:
        embedded.close()


def test_its_metrics_tell_of_the_fleet(replica: Replica):
    text = httpx.get(f"{replica.url}/metrics").text
    assert "wolfstream_fleet_replicas 1.0" in text
    assert "wolfstream_fleet_lag_seconds 0.0" in text


def test_what_many_ask_for_at_once_is_found_by_none(replica: Replica):
    """Each looks for it in the fleet, one after the other."""
    url = f"{replica.url}/v1/models/nobody-at-all"
    call(f"{replica.url}/v1/models", "GET")
    with ThreadPoolExecutor(8) as clients:
        statuses = clients.map(lambda _: httpx.get(url, timeout=30).status_code, range(8))
    assert set(statuses) == {404}


def test_keys_are_the_whole_fleets_and_take_effect_without_a_restart(
    replica: Replica, servers: NatsServers
):
    fleet = ["--fleet", ",".join(servers.addresses)]
    made = CliRunner().invoke(main, ["keys", "add", "--name", "a", "--scope", "admin", *fleet])
    key = made.output.split()[0]
    with_key = {"Authorization": f"Bearer {key}"}
    wait_for(lambda: status(replica, {}) == 401)
    wait_for(lambda: status(replica, with_key) == 200)
    assert CliRunner().invoke(main, ["keys", "revoke", "a", *fleet]).exit_code == 0
    wait_for(lambda: status(replica, with_key) == 401)


def status(replica: Replica, headers: dict[str, str]) -> int:
    return httpx.get(f"{replica.url}/v1/models", headers=headers, timeout=30).status_code
