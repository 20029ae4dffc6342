"""A thousand models are created, taught and deleted repeatedly; nothing of them is left."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.hard.conftest import Report
from tests.hard.processes import (
    most_resident_bytes,
    open_files,
    resident_bytes,
    threads,
    together,
)
from tests.service.process import CommandProcess

pytestmark = [pytest.mark.hard, pytest.mark.timeout(900)]

MODELS, CLIENTS, PASSES = 1_000, 4, 3
SPEC = {"working_set": {"max_size": 50}, "asset": {"dimension": 16}}
# What another pass may add once the allocator has what it needs; measured: 2 to 5 MB.
GROWTH_BYTES = 24 << 20


class Footprint(NamedTuple):
    """What a server has."""

    bytes: int
    open_files: int
    threads: int
    files: int
    rows: int


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CommandProcess]:
    with closing(CommandProcess(tmp_path / "data", snapshot_samples=8)) as running:
        yield running.start()


def footprint(server: CommandProcess) -> Footprint:
    with closing(sqlite3.connect(server.data / "log.sqlite")) as database:
        # A deletion leaves one, of which a bounded number is kept.
        left = "SELECT count(*) FROM log WHERE kind != 'deleted'"
        rows = int(database.execute(left).fetchone()[0])
    files = len(list((server.data / "snapshots").rglob("*"))) if rows else 0
    return Footprint(resident_bytes(server), open_files(server), threads(server), files, rows)


def use_models(server: CommandProcess, client: int) -> None:
    names = [f"m{k}" for k in range(client, MODELS, CLIENTS)]
    with httpx.Client(base_url=server.url, timeout=60) as http:
        for name in names:
            assert http.put(f"/v1/models/{name}", json=SPEC).status_code == 201
        for name in names:
            for head in ("samples", "asset"):
                body = {"x": [[k, len(name)] for k in range(6)], "y": [0, 1] * 3}
                headers = {"Idempotency-Key": f"{name}-{head}"}
                answer = http.post(f"/v1/models/{name}/{head}", json=body, headers=headers)
                assert answer.status_code == 200
        for name in names:
            assert http.delete(f"/v1/models/{name}").status_code == 204


def test_nothing_of_deleted_models_is_left(server: CommandProcess, report: Report) -> None:
    base = footprint(server)
    after = []
    for _ in range(PASSES):
        together(*(lambda k=k: use_models(server, k) for k in range(CLIENTS)))
        httpx.get(f"{server.url}/v1/models", timeout=60)
        after.append(footprint(server))
    report(
        models=PASSES * MODELS,
        MB_before_and_after_each_pass=[f.bytes >> 20 for f in (base, *after)],
        MB_at_most=most_resident_bytes(server) >> 20,
        open_files=[f.open_files for f in (base, *after)],
        threads=[f.threads for f in (base, *after)],
        files=[f.files for f in (base, *after)],
        rows=[f.rows for f in (base, *after)],
    )
    assert [f.rows for f in after] == [0] * PASSES
    assert [f.files for f in after] == [0] * PASSES
    assert after[-1].open_files <= base.open_files + 8  # of kept connections
    assert after[-1].threads <= after[0].threads
    assert after[-1].bytes - after[-2].bytes < GROWTH_BYTES
