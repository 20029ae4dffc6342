"""The snapshots of a model: which are kept, what is told of them, and who may ask for them."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from tests.service.process import ServerProcess
from tests.service.streams import body, curve, three_classes
from tests.service.writer_bench import Bench, state_of
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import add_key
from wolfstream.service.errors import ModelBroken, SnapshotFailed, UnknownModel, UnknownSnapshot
from wolfstream.service.settings import Settings
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.snapshot_files import SnapshotFiles

SPEC = {"asset": {"dimension": 16}}
ROWS = three_classes(20, 9).X


def create(client: httpx.Client, name: str, spec: Any = SPEC) -> None:
    client.put(f"/v1/models/{name}", json=spec).raise_for_status()


def learn(client: httpx.Client, name: str, n: int = 30, seed: int = 0) -> None:
    sent = body(three_classes(n, seed))
    client.post(f"/v1/models/{name}/samples", json=sent).raise_for_status()


def history(client: httpx.Client, name: str) -> dict[str, Any]:
    told: dict[str, Any] = client.get(f"/v1/models/{name}/history").raise_for_status().json()
    return told


def refused(answer: httpx.Response, status: int, slug: str) -> str:
    told = answer.json()
    assert (answer.status_code, told["type"]) == (status, f"urn:wolfstream:{slug}"), told
    detail: str = told["detail"]
    return detail


# -- over HTTP --------------------------------------------------------------------------


def test_a_new_model_has_none(client: httpx.Client, name: str) -> None:
    create(client, name)
    told = {"model": name, "sequence": 0, "rolled_back": None, "snapshots": []}
    epoch = client.get(f"/v1/models/{name}").json()["epoch"]
    assert history(client, name) == told | {"epoch": epoch}
    refused(client.get("/v1/models/nobody/history"), 404, "unknown-model")


def test_a_snapshot_on_request_is_on_disk_and_listed(
    client: httpx.Client, name: str, server: ServerProcess
) -> None:
    create(client, name)
    learn(client, name, 60)
    scores = {
        head: stands["prequential"]
        for head, stands in client.get(f"/v1/models/{name}").json()["heads"].items()
    }
    began = datetime.now(UTC) - timedelta(seconds=1)
    answer = client.post(f"/v1/models/{name}/snapshot")
    assert answer.status_code == 201
    made = answer.json()
    assert set(made) == {
        "sequence", "epoch", "bytes", "written", "samples_since", "rolled_back", "scores"
    }  # fmt: skip
    (path,) = server.data.glob(f"snapshots/*/{60:020d}.snapshot")
    assert (made["sequence"], made["bytes"]) == (60, path.stat().st_size)
    assert (made["samples_since"], made["rolled_back"]) == (0, None)
    assert made["scores"] == scores
    assert made["written"].endswith("Z")
    written = datetime.fromisoformat(made["written"])
    assert began <= written <= datetime.now(UTC)
    assert history(client, name)["snapshots"] == [made]
    assert client.get(f"/v1/models/{name}").json()["snapshot_sequence"] == 60


def test_the_newest_come_first_and_say_what_came_after_them(
    client: httpx.Client, name: str
) -> None:
    create(client, name)
    for seed in range(6):
        learn(client, name, 30, seed)
        client.post(f"/v1/models/{name}/snapshot").raise_for_status()
    learn(client, name, 7)
    told = history(client, name)
    assert told["sequence"] == 187
    listed = [(one["sequence"], one["samples_since"]) for one in told["snapshots"]]
    assert listed == [(180, 7), (150, 37), (120, 67), (90, 97)]
    judged = [one["scores"]["working_set"]["samples"] for one in told["snapshots"]]
    assert judged == sorted(judged, reverse=True)


def test_a_rollback_is_told(client: httpx.Client, name: str) -> None:
    create(client, name)
    for seed in range(2):
        learn(client, name, 30, seed)
        client.post(f"/v1/models/{name}/snapshot").raise_for_status()
    client.post(f"/v1/models/{name}/rollback", json={"sequence": 30}).raise_for_status()
    told = history(client, name)
    rolled_back = told["rolled_back"]
    assert (rolled_back["to"], rolled_back["at"]) == (30, 60)
    assert [one["rolled_back"] for one in told["snapshots"]] == [None, None]
    learn(client, name)
    client.post(f"/v1/models/{name}/snapshot").raise_for_status()
    marked = [one["rolled_back"] for one in history(client, name)["snapshots"]]
    assert marked == [rolled_back, None, None]


def test_a_damaged_file_is_listed_without_scores(
    client: httpx.Client, name: str, server: ServerProcess
) -> None:
    create(client, name)
    learn(client, name, 333)
    client.post(f"/v1/models/{name}/snapshot").raise_for_status()
    (path,) = server.data.glob(f"snapshots/*/{333:020d}.snapshot")
    path.write_bytes(b"WOLFSN")
    (told,) = history(client, name)["snapshots"]
    assert (told["sequence"], told["bytes"], told["scores"]) == (333, 6, None)


def test_what_it_is_of_a_regression(client: httpx.Client, name: str) -> None:
    create(client, name, {"task": "regression", "asset": {"dimension": 16}, "semiparametric": {}})
    client.post(f"/v1/models/{name}/samples", json=body(curve(50))).raise_for_status()
    made = client.post(f"/v1/models/{name}/snapshot").json()
    heads = client.get(f"/v1/models/{name}").json()["heads"]
    assert made["scores"] == {head: stands["prequential"] for head, stands in heads.items()}


def test_requests_that_are_refused(client: httpx.Client, name: str) -> None:
    create(client, name)
    path = f"/v1/models/{name}/snapshot"
    refused(client.post(path, json={"sequence": 3}), 422, "invalid")
    refused(client.post("/v1/models/nobody/snapshot"), 404, "unknown-model")
    assert history(client, name)["snapshots"] == []


def test_looking_needs_predict_and_the_rest_needs_admin(tmp_path: Path) -> None:
    data = tmp_path / "data"
    keys = {
        scope: add_key(KeyFile(data), scope, (scope,)) for scope in ("predict", "learn", "admin")
    }
    other = add_key(KeyFile(data), "other", ("admin",), "other-")
    server = ServerProcess(data).start()
    try:
        with httpx.Client(base_url=f"{server.url}/v1/models/", timeout=30) as client:

            def ask(key: str, method: str, path: str, sent: Any = None) -> int:
                headers = {"Authorization": f"Bearer {key}"}
                return client.request(method, f"m{path}", json=sent, headers=headers).status_code

            assert ask(keys["admin"], "PUT", "", SPEC) == 201
            assert ask(keys["learn"], "POST", "/samples", body(three_classes(30))) == 200
            for scope, status in (("predict", 403), ("learn", 403), ("admin", 201)):
                assert ask(keys[scope], "POST", "/snapshot") == status
                assert ask(keys[scope], "GET", "/history") == 200
            for scope, status in (("predict", 403), ("learn", 403), ("admin", 200)):
                assert ask(keys[scope], "POST", "/rollback", {"sequence": 30}) == status
            for method, path in (("GET", "/history"), ("POST", "/snapshot"), ("POST", "/rollback")):
                assert ask(other, method, path, {"sequence": 30}) == 403
    finally:
        server.close()


# -- how many, and of what the log is kept ----------------------------------------------


def test_as_many_are_kept_as_the_setting_says(tmp_path: Path) -> None:
    assert Settings(data=tmp_path).snapshots == 4
    with pytest.raises(ValidationError):
        Settings(data=tmp_path, snapshots=1)
    bench = Bench(tmp_path, snapshots=3)
    model = bench.create(SPEC)
    for seed in range(5):
        bench.learn(model, three_classes(30, seed))
        bench.snapshot(model)
    assert [one["sequence"] for one in bench.writer.history.describe(model)] == [150, 120, 90]
    bench.kill()


def begins(bench: Bench) -> int | None:
    looking = open_storage(bench.data, read_only=True)
    first = looking.journal.reader(1).begin()
    looking.close()
    return first


def test_the_log_is_kept_for_the_newest_two(bench: Bench) -> None:
    model = bench.create(SPEC)
    kept_from = []
    for seed in range(4):
        bench.learn(model, three_classes(30, seed))
        bench.snapshot(model)
        bench.learn(model, three_classes(5, seed))
        kept_from.append(begins(bench))
    assert kept_from == [0, 30, 65, 100]


@pytest.mark.parametrize("damaged", [0, 1])
def test_with_any_one_of_them_damaged_nothing_is_lost(tmp_path: Path, damaged: int) -> None:
    bench = Bench(tmp_path)
    model = bench.create(SPEC)
    for seed in range(4):
        bench.learn(model, three_classes(30, seed))
        bench.snapshot(model)
        bench.learn(model, three_classes(5, seed))
    before = state_of(model, ROWS)
    sequence = SnapshotFiles(tmp_path / "snapshots").sequences(model.id)[damaged]
    path = tmp_path / "snapshots" / "1" / f"{sequence:020d}.snapshot"
    path.write_bytes(path.read_bytes()[:-1])
    for _ in range(2):
        bench = bench.restarted()
        model = bench.writer.models.get("m")
        assert (state_of(model, ROWS), model.published.sequence) == (before, 140)
    bench.kill()


# -- the writer alone -------------------------------------------------------------------


def test_one_snapshot_of_a_model_is_written_at_a_time(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each holds a copy of the state in memory."""
    model, save, may = bench.create(SPEC), SnapshotFiles.save, threading.Event()
    bench.learn(model, three_classes(30))

    def slow(*given: Any) -> None:
        may.wait(30)
        save(*given)

    with monkeypatch.context() as patch:
        patch.setattr(SnapshotFiles, "save", slow)
        _, saving = bench.writer.snapshots.start(model)
        with pytest.raises(SnapshotFailed, match="try again"):
            bench.writer.snapshots.start(model)
        may.set()
        saving.result()
    assert bench.snapshot(model) == 30


def test_failed_snapshot_changes_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    model = bench.create(SPEC)
    bench.learn(model, three_classes(30))
    with monkeypatch.context() as patch:
        patch.setattr(SnapshotFiles, "save", full)
        _, saving = bench.writer.snapshots.start(model)
        with pytest.raises(OSError, match="no space left"):
            saving.result()
        bench.writer.snapshots.finish()
    assert (bench.writer.history.describe(model), model.snapshot_sequence) == ([], 0)
    assert bench.snapshot(model) == 30


def test_models_that_are_deleted_or_broken(bench: Bench) -> None:
    model = bench.create(SPEC)
    model.broken = "its learner failed"
    with pytest.raises(ModelBroken):
        bench.writer.snapshots.start(model)
    model.broken = ""
    bench.writer.models.delete(model)
    with pytest.raises(UnknownModel):
        bench.writer.snapshots.start(model)


def test_a_snapshot_that_another_takes_the_place_of_meanwhile_is_unknown(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = bench.create(SPEC)
    bench.learn(model, three_classes(30))
    to, snapshots = bench.snapshot(model), bench.storage.snapshots
    content = snapshots.content

    def deleted_before_it_is_read(number: int, sequence: int) -> bytes:
        Path(snapshots.name(number, sequence)).unlink()
        return content(number, sequence)

    monkeypatch.setattr(snapshots, "content", deleted_before_it_is_read)
    with pytest.raises(UnknownSnapshot):
        bench.writer.history.roll_back(model, to)
