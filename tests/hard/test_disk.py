"""Disks that are full or fail: answered with 503, nothing acknowledged is lost, nothing refused
comes back, and learning goes on once the disk does.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.hard.conftest import Report
from tests.hard.faults import Poster, failing, fill, small_disk
from tests.service.process import CommandProcess
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import KeysError, add_key
from wolfstream.service.recovery.absorb import decode_block
from wolfstream.service.storage.sqlite_rows import read_entry

pytestmark = [pytest.mark.hard, pytest.mark.timeout(600)]

SPEC = {"working_set": {"max_size": 300}, "asset": {"dimension": 64}}
WIDE = 200


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 16) as folder:
        yield folder


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CommandProcess]:
    """Over a small disk where the test has one; its own printing goes elsewhere."""
    uses_disk = "disk" in request.fixturenames
    folder = request.getfixturevalue("disk") if uses_disk else tmp_path
    with closing(CommandProcess(folder / "data", snapshot_samples=10**9)) as running:
        running.log_path = tmp_path / "server.log"
        yield running


@pytest.fixture
def poster(server: CommandProcess) -> Iterator[Poster]:
    """Of a model m on the started server."""
    server.start()
    httpx.put(f"{server.url}/v1/models/m", json=SPEC, timeout=60).raise_for_status()
    with closing(Poster(server, "m")) as made:
        yield made


def held(server: CommandProcess) -> list[int]:
    """Return the numbers of the samples in the log, in its order, as the server left it."""
    with closing(sqlite3.connect(server.data / "log.sqlite")) as database:
        rows = database.execute("SELECT * FROM log WHERE kind = 'samples' ORDER BY sequence")
        blocks = [[read_entry(row)] for row in rows]
    return [int(row[1]) for block in blocks for row in decode_block(block).samples.X.tolist()]  # type: ignore[union-attr]


def sequence(server: CommandProcess) -> int:
    told = httpx.get(f"{server.url}/v1/models/m", timeout=60).raise_for_status().json()
    assert told["status"] == "ok"
    return int(told["sequence"])


class TestFullDisk:
    def test_while_samples_are_appended(
        self, disk: Path, server: CommandProcess, poster: Poster, report: Report
    ):
        for _ in range(3):
            for _ in range(50):
                assert poster.post(WIDE) == 200
            filler = fill(disk)
            poster.post_until(503, WIDE)
            for _ in range(20):
                poster.post(WIDE)
            answer = httpx.post(f"{server.url}/v1/models/m/predict", json={"x": [[1.0] * WIDE]})
            assert answer.status_code == 200
            told = httpx.get(f"{server.url}/readyz")
            assert told.status_code == 200
            assert "the last commit to the journal failed" in told.json()["learning"]
            assert httpx.get(f"{server.url}/readyz?learning=true").status_code == 503
            filler.unlink()
            poster.post_until(200, WIDE)
            assert "learning" not in httpx.get(f"{server.url}/readyz?learning=true").json()
            assert sequence(server) == len(poster.kept)
        filler = fill(disk)
        poster.post_until(503, WIDE)
        server.kill()
        try:
            server.start()  # it may, where the log has room of its own
            server.kill()
        except RuntimeError:
            assert "free space" in server.log()
        filler.unlink()
        server.start()
        assert sequence(server) == len(poster.kept)
        server.kill()
        poster.check(held(server))
        report(acknowledged=len(poster.kept), refused_with_503=len(poster.refused), lost=0)

    def test_while_models_are_made_and_deleted(
        self, disk: Path, server: CommandProcess, poster: Poster
    ):
        exists = {"m": True}
        with httpx.Client(base_url=server.url, timeout=60) as client:
            for k in range(10):
                exists[f"before{k}"] = client.put(f"/v1/models/before{k}").status_code == 201
            filler = fill(disk)
            poster.post_until(503, WIDE)
            said = []
            for k in range(40):
                said.append(client.put(f"/v1/models/full{k}").status_code)
                exists[f"full{k}"] = said[-1] == 201
                said.append(client.delete(f"/v1/models/before{k % 10}").status_code)
                if said[-1] == 204:
                    exists[f"before{k % 10}"] = False
            assert set(said) <= {201, 204, 404, 503}
            assert 503 in said
            filler.unlink()
            assert client.put("/v1/models/after").status_code == 201
        exists["after"] = True
        for _ in range(2):
            listed = httpx.get(f"{server.url}/v1/models").json()["models"]
            assert {m["model"] for m in listed} == {name for name, there in exists.items() if there}
            server.kill()
            server.start()

    def test_while_keys_are_added(self, disk: Path):
        data = disk / "data"
        add_key(KeyFile(data), "first", ("admin",))
        filler = fill(disk)
        with pytest.raises(KeysError, match="No space left"):
            add_key(KeyFile(data), "second", ("admin",))
        assert [key.name for key in KeyFile(data).read() or []] == ["first"]
        assert not list(data.glob("*.partial"))
        filler.unlink()
        add_key(KeyFile(data), "third", ("admin",))
        assert [key.name for key in KeyFile(data).read() or []] == ["first", "third"]


# SQLite writes with pwrite64 and flushes with fdatasync, or fsync where that is not there.
@pytest.mark.parametrize(
    ("calls", "error"),
    [("fsync,fdatasync", "EIO"), ("fsync,fdatasync", "ENOSPC"), ("pwrite64", "EIO")],
    ids=["fsync", "fsync without room", "write"],
)
def test_failed_system_calls_lose_nothing(
    server: CommandProcess, poster: Poster, calls: str, error: str, report: Report
) -> None:
    for _ in range(20):
        assert poster.post() == 200
    with failing(server, calls, error):
        for _ in range(10):
            assert poster.post() == 503
    poster.post_until(200)
    assert sequence(server) == len(poster.kept)
    for when in ("1+2", "2+3", "3+7"):
        refused = len(poster.refused)
        with failing(server, calls, error, when):
            for _ in range(30):
                poster.post()
            server.kill()
        assert len(poster.refused) > refused
        poster.check(held(server))
        server.start()
        assert len(poster.kept) <= sequence(server) <= len(poster.kept) + len(poster.doubtful)
    report(
        acknowledged=len(poster.kept),
        refused_with_503=len(poster.refused),
        of_them_left_in_doubt=len(poster.doubtful),
        came_back=sequence(server) - len(poster.kept),
    )


def test_failed_snapshot_fsync_loses_nothing(server: CommandProcess, poster: Poster) -> None:
    assert server.terminate() == 0
    server.settings["snapshot_samples"] = 40
    server.start()
    with failing(server, "fsync", "EIO"):
        while "snapshot failed" not in server.log():
            assert poster.post() in (200, 503)  # 503 where SQLite flushes with fsync too
    assert not list(server.data.glob("snapshots/*/*.partial"))
    for _ in range(100):
        poster.post_until(200)
    assert list(server.data.glob("snapshots/*/*.snapshot"))
    server.kill()
    server.start()
    assert sequence(server) == len(poster.kept)
