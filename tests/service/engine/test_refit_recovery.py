"""A refit that is done is in the model for good; one that is not leaves no trace."""

import sqlite3
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.heads.test_refit_served import (
    ENDLESS,
    FITTED,
    SPEC,
    ask,
    ended,
    head,
    of_the_library,
    post,
    problem,
    refitted,
    running,
    said,
    wave,
)
from tests.service.process import ServerProcess

BOTH = {"task": "regression", "asset": {"dimension": 32}, "semiparametric": FITTED}


@pytest.fixture
def server(tmp_path: Path) -> Any:
    """A server of the test's own that saves no snapshot until it stops."""
    process = ServerProcess(tmp_path / "data", snapshot_samples=10**9).start()
    yield process
    process.close()


def everything(client: httpx.Client) -> list[Any]:
    """What the model says to the last bit, and how it stands; buffers may differ in size."""
    told = client.get("/v1/models/m").json()
    told["heads"]["semiparametric"].pop("bytes")
    told.pop("snapshot_sequence")
    return [said(client, "m"), told]


def create(client: httpx.Client, spec: Any) -> None:
    client.put("/v1/models/m", json=spec).raise_for_status()


def live_through(client: httpx.Client) -> None:
    """Samples by both calls, with three refits among them, two of them at the same sequence."""
    create(client, BOTH)
    X, y = wave(900)
    post(client, "m", X[:300], y[:300])
    refitted(client, "m")
    post(client, "m", X[300:600], y[300:600], "asset")
    refitted(client, "m")
    refitted(client, "m")
    post(client, "m", X[600:], y[600:])


def endless(client: httpx.Client) -> dict[str, Any]:
    """A fitted model of many samples, and the job of its next refit, which runs on and on."""
    create(client, ENDLESS)
    random = np.random.default_rng(3)
    X = random.uniform(0.0, 10.0, (4000, 2))
    post(client, "m", X, np.sin(X[:, 0]) + random.standard_normal(4000))
    return running(client, ask(client, "m"))


@pytest.mark.parametrize("stop", ["kill", "terminate"])
def test_a_restart_gives_the_same_fit_window_and_score(
    server: ServerProcess, client: httpx.Client, stop: str
) -> None:
    live_through(client)
    before = everything(client)
    getattr(server, stop)()
    server.start()
    assert everything(client) == before
    X, y = wave(100, seed=1)
    post(client, "m", X, y)
    result = refitted(client, "m")["result"]
    assert result["sequence"] == 1000
    beta = of_the_library(np.vstack([wave(900)[0], X]), np.concatenate([wave(900)[1], y])).beta
    assert [part["beta"] for part in result["beta"]] == beta.tolist()


def test_kill_9_as_soon_as_a_refit_is_done_keeps_it(
    server: ServerProcess, client: httpx.Client
) -> None:
    create(client, SPEC)
    post(client, "m", *wave(300))
    job = refitted(client, "m")
    server.kill()
    server.start()
    assert head(client, "m")["fit"] == job["result"]
    assert len(said(client, "m")) == 50
    told = problem(client.get(job["href"]), 404)
    assert told["type"] == "urn:wolfstream:unknown-job"
    assert "description says which fit" in told["detail"]


def test_kill_9_during_a_refit_keeps_the_one_before(
    server: ServerProcess, client: httpx.Client
) -> None:
    create(client, ENDLESS)
    X = np.random.default_rng(0).standard_normal((5, 2))
    post(client, "m", X, X.sum(axis=1))
    refitted(client, "m")
    before = said(client, "m", X)
    job = endless(client)
    server.kill()
    server.start()
    assert said(client, "m", X) == before
    assert client.get("/v1/models/m").json()["sequence"] == 4005
    assert client.get("/v1/models/m/jobs").json() == {"jobs": []}
    problem(client.get(job["href"]), 404)
    assert running(client, ask(client, "m"))["sequence"] == 4005


def test_sigterm_ends_a_refit_and_loses_nothing_else(
    server: ServerProcess, client: httpx.Client
) -> None:
    endless(client)
    assert server.terminate() == 0
    assert "Traceback" not in server.log()
    server.start()
    told = client.get("/v1/models/m").json()
    assert (told["sequence"], told["status"]) == (4000, "ok")
    assert told["heads"]["semiparametric"]["fit"] is None
    assert told["heads"]["semiparametric"]["window"] == 4000


def test_a_model_deleted_during_its_refit_does_not_come_back(
    server: ServerProcess, client: httpx.Client
) -> None:
    endless(client)
    client.delete("/v1/models/m").raise_for_status()
    create(client, SPEC)
    post(client, "m", *wave(100))
    refitted(client, "m")
    server.kill()
    server.start()
    told = client.get("/v1/models/m").json()
    assert (told["sequence"], told["status"]) == (100, "ok")
    assert server.terminate() == 0


def test_fits_make_snapshots_due_and_their_log_is_dropped(tmp_path: Path) -> None:
    """A stream that stands still, refitted again and again, does not fill the disk."""
    server = ServerProcess(tmp_path / "data", snapshot_samples=300).start()
    try:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            create(client, SPEC)
            for seed in range(8):
                post(client, "m", *wave(80, seed))
                refitted(client, "m")
            before = everything(client)
            server.kill()
            server.start()
            assert everything(client) == before
            post(client, "m", *wave(1))
            assert server.terminate() == 0
        kept = sorted(int(path.stem) for path in server.data.glob("snapshots/*/*.snapshot"))
        assert len(kept) == 4
        found = "SELECT sequence FROM log WHERE kind = 'fit'"
        with sqlite3.connect(server.data / "log.sqlite") as database:
            fits = [row[0] for row in database.execute(found)]
        database.close()
        assert len(fits) < 8
        assert all(sequence >= kept[-2] for sequence in fits)
    finally:
        server.close()


def test_a_damaged_newest_snapshot_falls_back_to_the_one_before(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", snapshot_samples=200).start()
    try:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            live_through(client)
            before = everything(client)
            assert server.terminate() == 0
            newest = sorted(server.data.glob("snapshots/*/*.snapshot"))[-1]
            newest.write_bytes(newest.read_bytes()[:-1])
            server.start()
            assert everything(client) == before
    finally:
        server.close()


def test_refits_that_wait_are_bounded(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", refits=1).start()
    try:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            endless(client)
            for name in ("second", "third"):
                client.put(f"/v1/models/{name}", json=SPEC).raise_for_status()
                post(client, name, *wave(100))
            waiting = ask(client, "second")
            refused = client.post("/v1/models/third/refit")
            assert problem(refused, 503)["type"] == "urn:wolfstream:jobs-full"
            assert int(refused.headers["retry-after"]) > 0
            client.delete("/v1/models/m").raise_for_status()
            assert ended(client, waiting)["status"] == "done"
            refitted(client, "third")
    finally:
        server.close()
