"""A model that goes bad: the server says so, once, everywhere, and after a crash as well."""

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tests.service.monitor.conftest import SideFiles
from tests.service.monitor.test_webhook import receiving
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import two_classes
from tests.service.web.test_events import events_of, looks_often
from wolfstream.service.model.live import Model
from wolfstream.service.monitor.alerts import LONGEST_PAUSE, Alert, Alerts, model_alerts
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.storage.data_directory import side_path
from wolfstream.solver.calibration.changes import Change

SECRET = "a secret of enough characters"
FLIPPED = 1600


def started(tmp_path: Path, **settings: object) -> ServerProcess:
    server = ServerProcess(tmp_path / "data", **settings)
    server.prelude = looks_often
    return server.start()


def learn_a_stream_that_flips(url: str, name: str = "m", n: int = 2200) -> None:
    """After so many samples the labels change their places."""
    samples = two_classes(n)
    one, other = sorted(set(samples.y))
    flip = {one: other, other: one}
    y = [label if i < FLIPPED else flip[label] for i, label in enumerate(samples.y)]
    with httpx.Client(base_url=url, timeout=60) as client:
        client.put(f"/v1/models/{name}", json=PAPERS | {"asset": None})
        for start in range(0, n, 200):
            rows = samples.X[start : start + 200].tolist()
            sent = {"x": rows, "y": y[start : start + 200]}
            assert client.post(f"/v1/models/{name}/samples", json=sent).status_code == 200


def changes_of(url: str, name: str = "m") -> list[dict[str, Any]]:
    described = httpx.get(f"{url}/v1/models/{name}").json()
    found: list[dict[str, Any]] = described["heads"]["working_set"]["changes"]
    return found


def until(what: Callable[[], Any], seconds: float = 15.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found
    return found


def test_a_change_is_described_counted_logged_sent_and_posted(tmp_path: Path):
    with receiving() as (url, got):
        settings = {"webhook": url, "webhook_secret": SECRET, "webhook_private": True}
        server = started(tmp_path, **settings)
        try:
            httpx.put(f"{server.url}/v1/models/m", json=PAPERS | {"asset": None})
            with httpx.stream("GET", f"{server.url}/v1/models/m/events", timeout=30) as response:
                learn_a_stream_that_flips(server.url)
                events = events_of(response.iter_lines())
                alert = next(event["data"] for event in events if event["event"] == "alert")
            (change, *_) = changes_of(server.url)
            assert FLIPPED < change["sequence"] <= FLIPPED + 400
            assert change["before"] < 0.2 < change["after"]
            assert alert.items() >= {"model": "m", "head": "working_set", **change}.items()
            metrics = httpx.get(f"{server.url}/metrics").text
            assert 'prequential_changes_total{head="working_set",model="m"} 1.0' in metrics
            until(lambda: got)
            assert json.loads(got[0][1])["data"] == alert
            assert "predictions became worse: model=m head=working_set" in server.log()
            assert SECRET not in server.log()
        finally:
            server.close()


def waiting_alerts(server: ServerProcess) -> int:
    """How many alerts are not known to be delivered."""
    with closing(sqlite3.connect(side_path(server.data))) as db:
        (count,) = db.execute("SELECT count(*) FROM alerts WHERE waiting").fetchone()
    return int(count)


def test_a_crash_changes_nothing_and_nothing_is_said_twice(tmp_path: Path):
    with receiving() as (url, got):
        settings = {"webhook": url, "webhook_secret": SECRET, "webhook_private": True}
        server = started(tmp_path, **settings)
        try:
            learn_a_stream_that_flips(server.url)
            until(lambda: got)
            # A server that is killed before it has the response posts again, under the same id.
            until(lambda: not waiting_alerts(server))
            before = changes_of(server.url)
            for _ in range(2):
                server.kill()
                server.start()
                assert changes_of(server.url) == before
            time.sleep(0.5)
            assert len(got) == len(before) == 1
        finally:
            server.close()


def test_a_rollback_forgets_changes_and_finds_later_ones(tmp_path: Path):
    server = started(tmp_path)
    try:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            learn_a_stream_that_flips(server.url, n=FLIPPED)
            client.post("/v1/models/m/snapshot")
            learn_a_stream_that_flips(server.url)
            assert len(changes_of(server.url)) == 1
            client.post("/v1/models/m/rollback", json={"sequence": FLIPPED})
        assert changes_of(server.url) == []
    finally:
        server.close()


def test_changes_from_before_a_rollback_are_reported_once(tmp_path: Path, side_file: SideFiles):
    """More changes than are stored, then a rollback over most of them; a head lists its last 20."""
    alerts, model = Alerts(side_file(tmp_path), posted=False), Model(1, "m", ModelSpec())

    def reported(*sequences: int) -> list[int]:
        changes = tuple(Change(sequence, 0.1, 0.9, 64) for sequence in sequences[-20:])
        heads = {"adaptive": SimpleNamespace(changes=changes)}
        model.published = model.published._replace(heads=heads)  # type: ignore[arg-type]
        return [alert.sequence for alert in alerts.record(model_alerts(model))]

    for end in range(1, 81):
        assert reported(*range(1, end + 1)) == [end]
    model.rolled_back = {"to": 25, "at": 80, "time": ""}
    assert reported(*range(1, 26)) == []
    assert reported(*range(1, 26), 82) == [82]
    assert reported(*range(1, 26), 82, 84) == [84]


def test_alert_survives_a_clock_put_back(
    tmp_path: Path, side_file: SideFiles, monkeypatch: pytest.MonkeyPatch
):
    alerts, alert = Alerts(side_file(tmp_path), posted=True), Alert(1, "adaptive", 7, {}, 0)
    present = 2e9
    monkeypatch.setattr(time, "time", lambda: present)
    assert alerts.record([alert])
    present += 1
    assert alerts.due() is not None
    alerts.postpone(alert, LONGEST_PAUSE)
    present += LONGEST_PAUSE - 1
    assert alerts.due() is None
    present += 2
    assert alerts.due() is not None
    alerts.postpone(alert, 1.0)
    present -= 86_400.0
    assert alerts.due() is not None


def test_a_webhook_needs_a_secret(tmp_path: Path):
    server = ServerProcess(tmp_path / "data", webhook="https://example.com/alerts")
    assert server.launch().wait(60) != 0
    assert "WOLFSTREAM_WEBHOOK_SECRET" in server.log()
