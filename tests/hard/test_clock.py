"""A wall clock that jumps by a year, forwards and backwards, while the server learns."""

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.hard.clients import HttpClient, StreamClient
from tests.hard.conftest import Report
from tests.hard.processes import together
from tests.service.process import CommandProcess
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import add_key

pytestmark = [pytest.mark.hard, pytest.mark.timeout(300)]

YEAR, JUMPS = 365 * 86_400, 16
FITTED = {"task": "regression", "working_set": None, "semiparametric": {"window": 200}}


@pytest.fixture
def offset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that says by how many seconds the clock is off."""
    file = tmp_path / "offset"
    file.write_text("0")
    monkeypatch.setenv("CLOCK_OFFSET_FILE", str(file))
    path = [str(Path(__file__).parent / "clock"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    return file


@pytest.fixture
def server(tmp_path: Path, offset: Path) -> Iterator[CommandProcess]:  # noqa: ARG001
    with closing(CommandProcess(tmp_path / "data", snapshot_samples=100)) as running:
        yield running.start()


def year_of(server: CommandProcess) -> int:
    """As the server's answers tell it."""
    with httpx.Client(base_url=server.url) as http:
        return int(http.get("/livez").headers["date"].split()[3])


def test_a_clock_that_jumps_changes_nothing(
    server: CommandProcess, offset: Path, report: Report
) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as http:
        http.put("/v1/models/both", json={}).raise_for_status()
        http.put("/v1/models/numbers", json=FITTED).raise_for_status()
        clients = [
            HttpClient(0, "both", 5),
            StreamClient(1, "both", packed=True),
            HttpClient(2, "numbers", 5, target=0.5),
        ]
        years, refits = set(), []

        def jump() -> None:
            moves = itertools.cycle([YEAR, -YEAR, 0, 3 * YEAR, -3 * YEAR])
            for move in itertools.islice(moves, JUMPS):
                offset.write_text(str(move))
                time.sleep(0.5)
                refits.append(http.post("/v1/models/numbers/refit").status_code)
                years.add(year_of(server))
            for client in clients:
                client.calm = True

        together(jump, *(lambda c=c: c.run(server.url) for c in clients))
        learned = http.get("/v1/models/both").json()["sequence"]
        deadline = time.monotonic() + 60
        while http.get("/v1/models/numbers/jobs").json()["jobs"][0]["status"] == "running":
            assert time.monotonic() < deadline
        jobs = http.get("/v1/models/numbers/jobs").json()["jobs"]
    assert len(years) > 3, "the clock did not jump"
    assert set(refits) <= {202, 409}
    assert all(0 <= job["seconds"] < 60 for job in jobs)
    assert learned == sum(client.sent for client in clients[:2])
    assert all(len(client.acknowledged) == client.sent for client in clients)
    assert "Traceback" not in server.log()
    server.kill()
    offset.write_text(str(-YEAR))
    server.start()
    assert httpx.get(f"{server.url}/v1/models/both").json()["sequence"] == learned
    report(jumps=JUMPS, samples=learned, refits=len(jobs))


def test_a_quota_is_counted_by_a_clock_that_does_not_jump(tmp_path: Path, offset: Path) -> None:
    data = tmp_path / "data"
    admin, few = (
        add_key(KeyFile(data), "admin", ("admin",)),
        add_key(KeyFile(data), "few", ("learn",), "", 5.0),
    )
    with closing(CommandProcess(data).start()) as server:

        def post(key: str, n: int) -> httpx.Response:
            body = {"x": [[1, k] for k in range(n)], "y": [k % 2 for k in range(n)]}
            headers = {"Authorization": f"Bearer {key}"}
            return httpx.post(f"{server.url}/v1/models/m/samples", json=body, headers=headers)

        headers = {"Authorization": f"Bearer {admin}"}
        httpx.put(f"{server.url}/v1/models/m", headers=headers).raise_for_status()
        assert post(few, 20).status_code == 200  # three seconds of debt
        for move in (YEAR, -YEAR):
            offset.write_text(str(move))
            answer = post(few, 1)
            assert answer.status_code == 429
            assert 1 <= int(answer.headers["retry-after"]) <= 4
        time.sleep(4)
        assert post(few, 1).status_code == 200
