"""Going back to a snapshot: durable before it is answered, and never undone by a restart."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest

from tests.service.engine.test_history import refused
from tests.service.heads.test_refit_served import ENDLESS, ask, ended, refitted, running
from tests.service.process import ServerProcess
from tests.service.recovery.test_recovery import GRID, SPEC
from tests.service.streams import body, curve, part, three_classes
from tests.service.writer_bench import Bench
from tests.service.writer_bench import state_of as state_in
from wolfstream.service.errors import NotYetLearned, RefitFailed, StorageFailed, UnknownModel
from wolfstream.service.heads.kinds import fit_window
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.log import rolled_back_at
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.sqlite_log import SqliteTerm

FITTED = {"task": "regression", "asset": {"dimension": 16}, "semiparametric": {"tol": 0.1}}
ROWS = np.array(GRID)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that makes snapshots when it is asked to."""
    data = tmp_path_factory.mktemp("rollback") / "data"
    process = ServerProcess(data, snapshot_samples=10**9).start()
    yield process
    process.close()


def create(client: httpx.Client, name: str, spec: Any = SPEC) -> None:
    client.put(f"/v1/models/{name}", json=spec).raise_for_status()


def learn(client: httpx.Client, name: str, n: int = 60, seed: int = 0) -> int:
    """Post a stream in pieces to both heads; the last sequence."""
    samples, sequence = three_classes(n, seed), 0
    for start in range(0, n, 23):
        piece = body(part(samples, start, min(start + 23, n)))
        for call in ("samples", "asset"):
            answer = client.post(f"/v1/models/{name}/{call}", json=piece)
            sequence = answer.raise_for_status().json()["sequence"]
    return sequence


def snapshot(client: httpx.Client, name: str) -> int:
    answer = client.post(f"/v1/models/{name}/snapshot")
    assert answer.status_code == 201, answer.text
    sequence: int = answer.json()["sequence"]
    return sequence


def roll_back(client: httpx.Client, name: str, sequence: int) -> dict[str, Any]:
    answer = client.post(f"/v1/models/{name}/rollback", json={"sequence": sequence})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def state_of(client: httpx.Client, name: str) -> list[Any]:
    """All that a model says but its sequence, to the last bit; buffers may differ in size."""
    said: list[Any] = []
    told = client.get(f"/v1/models/{name}").raise_for_status().json()
    for head, stands in told["heads"].items():
        answer = client.post(f"/v1/models/{name}/predict?head={head}", json={"x": GRID})
        said.append({key: answer.json().get(key) for key in ("classes", "prediction", "decision")})
        stands.pop("bytes", None)
    return [*said, told["rows"], told["features"], told["heads"]]


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


# -- what it means ----------------------------------------------------------------------


def test_the_model_is_what_it_was_and_its_sequence_goes_on(client: httpx.Client, name: str) -> None:
    create(client, name)
    learn(client, name)
    back_to, before = snapshot(client, name), state_of(client, name)
    at = learn(client, name, seed=1)
    assert state_of(client, name) != before
    told = roll_back(client, name, back_to)
    assert told == client.get(f"/v1/models/{name}").json()
    assert told["sequence"] == at
    assert {key: told["rolled_back"][key] for key in ("to", "at")} == {"to": back_to, "at": at}
    assert told["rolled_back"]["time"].endswith("Z")
    assert state_of(client, name) == before
    waited = client.post(f"/v1/models/{name}/predict?min_sequence={at}", json={"x": GRID})
    assert waited.json()["sequence"] == at
    assert learn(client, name, 10, seed=2) == at + 20


def test_what_is_learned_next_is_learned_by_the_model_that_was(
    client: httpx.Client, name: str
) -> None:
    """As if the samples between the snapshot and the rollback had never been there."""
    back, never = name, f"{name}-never"
    for each in (back, never):
        create(client, each)
        learn(client, each)
        snapshot(client, each)
    learn(client, back, seed=1)
    roll_back(client, back, 120)
    learn(client, never, 100, seed=2)
    learn(client, back, 100, seed=2)
    assert state_of(client, back) == state_of(client, never)


def test_names_and_labels_met_since_are_forgotten(client: httpx.Client, name: str) -> None:
    create(client, name)

    def post(*rows: dict[str, float], y: list[Any]) -> None:
        answer = client.post(f"/v1/models/{name}/samples", json={"x": rows, "y": y})
        answer.raise_for_status()

    post({"a": 1}, {"b": 1}, y=["no", "yes"])
    back_to = snapshot(client, name)
    post({"c": 1, "d": 1}, y=["maybe"])
    told = roll_back(client, name, back_to)
    assert told["features"] == 2
    assert told["heads"]["working_set"]["classes"] == ["no", "yes"]
    post({"e": 1}, y=[True])
    assert client.get(f"/v1/models/{name}").json()["features"] == 3


def test_predictions_are_served_all_the_while_and_sequences_only_grow(
    client: httpx.Client, name: str, server: ServerProcess
) -> None:
    create(client, name)
    learn(client, name)
    back_to = snapshot(client, name)
    done, seen = threading.Event(), []

    def predict() -> None:
        with httpx.Client(base_url=server.url, timeout=60) as http:
            while not done.is_set():
                answer = http.post(f"/v1/models/{name}/predict", json={"x": GRID})
                seen.append((answer.status_code, answer.json().get("sequence")))

    thread = threading.Thread(target=predict)
    thread.start()
    for seed in range(6):
        learn(client, name, 23, seed)
        roll_back(client, name, back_to)
    done.set()
    thread.join()
    assert {status for status, _ in seen} == {200}
    sequences = [sequence for _, sequence in seen]
    assert sequences == sorted(sequences)


# -- durable ----------------------------------------------------------------------------


def test_kill_9_right_after_the_answer_keeps_it(
    client: httpx.Client, name: str, server: ServerProcess
) -> None:
    create(client, name)
    learn(client, name)
    back_to, before = snapshot(client, name), state_of(client, name)
    at = learn(client, name, seed=1)
    told = roll_back(client, name, back_to)
    server.kill()
    server.start()
    assert state_of(client, name) == before
    again = client.get(f"/v1/models/{name}").json()
    assert (again["sequence"], again["rolled_back"]) == (at, told["rolled_back"])


def learned(data: Path, spec: Any = SPEC) -> tuple[Bench, Model]:
    """A model with a snapshot at 30."""
    bench = Bench(data)
    model = bench.create(spec)
    bench.learn(model, three_classes(30))
    assert bench.snapshot(model) == 30
    return bench, model


def revived(bench: Bench) -> tuple[Bench, Model, list[Any]]:
    """After a kill: the model, and all that it says."""
    bench = bench.restarted()
    model = bench.writer.models.get("m")
    return bench, model, state_in(model, ROWS)


def test_a_restart_goes_on_bit_for_bit(tmp_path: Path) -> None:
    bench, model = learned(tmp_path)
    bench.learn(model, three_classes(40, 1), "asset")
    bench.writer.history.roll_back(model, 30)
    bench.learn(model, three_classes(40, 2))
    bench.learn(model, three_classes(40, 3), "asset")
    before, told = state_in(model, ROWS), model.rolled_back
    for _ in range(2):
        bench, model, after = revived(bench)
        assert (after, model.published.sequence, model.rolled_back) == (before, 150, told)
    bench.close()
    bench = Bench(tmp_path)
    model = bench.writer.models.get("m")
    assert (state_in(model, ROWS), model.rolled_back) == (before, told)
    assert model.snapshot_sequence == 150
    bench.kill()


def test_a_snapshot_of_what_was_left_does_not_bring_it_back(tmp_path: Path) -> None:
    """The newest snapshot has the same sequence as the rollback, and is older than it."""
    bench, model = learned(tmp_path)
    before = state_in(model, ROWS)
    bench.learn(model, three_classes(30, 1))
    left, undone = bench.snapshot(model), state_in(model, ROWS)
    bench.writer.history.roll_back(model, 30)
    bench, model, after = revived(bench)
    assert (after, model.published.sequence, model.snapshot_sequence) == (before, left, left)
    # It is also the way forward again.
    bench.writer.history.roll_back(model, left)
    bench, model, after = revived(bench)
    assert (after, model.published.sequence) == (undone, left)
    bench.kill()


def test_snapshot_at_a_rollback_replaces_the_former(tmp_path: Path) -> None:
    bench, model = learned(tmp_path)
    before = state_in(model, ROWS)
    bench.learn(model, three_classes(30, 1))
    bench.snapshot(model)
    bench.writer.history.roll_back(model, 30)
    at = bench.snapshot(model)
    bench, model, after = revived(bench)
    assert after == before
    bench.learn(model, three_classes(30, 2))
    bench.writer.history.roll_back(model, at)
    assert state_in(model, ROWS) == before
    bench.kill()


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("other", [False, True])
def test_damaged_snapshots_fall_back_to_the_rolled_back_state(
    tmp_path: Path, one: bool, other: bool
) -> None:
    """Of the snapshot that it went back to, and of the one made after that."""
    bench, model = learned(tmp_path)
    bench.learn(model, three_classes(30, 1))
    bench.writer.history.roll_back(model, 30)
    bench.learn(model, three_classes(30, 2))
    bench.snapshot(model)
    bench.learn(model, three_classes(30, 3))
    before = state_in(model, ROWS)
    for damaged, sequence in ((one, 30), (other, 90)):
        if damaged:
            damage(tmp_path / "snapshots" / "1" / f"{sequence:020d}.snapshot")
    for _ in range(2):
        bench, model, after = revived(bench)
        assert (after, model.published.sequence) == (before, 120)
    bench.kill()


def test_snapshots_after_it_make_its_record_superfluous(tmp_path: Path) -> None:
    """It takes the room of a state, until two snapshots are newer than it."""
    bench, model = learned(tmp_path)
    bench.writer.history.roll_back(model, 30)
    held = []
    for seed in range(3):
        bench.learn(model, three_classes(30, seed))
        bench.snapshot(model)
        looking = open_storage(tmp_path, read_only=True)
        held.append(rolled_back_at(looking.journal.reader(model.id)))
        looking.close()
        before = state_in(model, ROWS)
        bench, model, after = revived(bench)
        assert after == before
    assert held == [30, None, None]
    bench.kill()


def test_several_at_one_sequence(tmp_path: Path) -> None:
    bench, model = learned(tmp_path)
    states = {30: state_in(model, ROWS)}
    for seed in (1, 2):
        bench.learn(model, three_classes(30, seed))
        states[bench.snapshot(model)] = state_in(model, ROWS)
    bench.learn(model, three_classes(30, 3))
    for back_to in (30, 90, 60):
        bench.writer.history.roll_back(model, back_to)
        bench, model, after = revived(bench)
        assert (after, model.published.sequence) == (states[back_to], 120)
    bench.kill()


def test_a_crash_between_writing_it_and_going_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, model = learned(tmp_path)
    before = state_in(model, ROWS)
    bench.learn(model, three_classes(30, 1))

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "roll_back", crash)
        with pytest.raises(KeyboardInterrupt):
            bench.writer.history.roll_back(model, 30)
    bench, model, after = revived(bench)
    assert (after, model.published.sequence) == (before, 60)
    bench.kill()


def test_one_that_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, model = learned(tmp_path)
    bench.learn(model, three_classes(30, 1))
    before = state_in(model, ROWS)

    def full(*_: Any) -> None:
        raise StorageFailed("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteTerm, "roll_back", full)
        with pytest.raises(StorageFailed):
            bench.writer.history.roll_back(model, 30)
    assert (state_in(model, ROWS), model.rolled_back) == (before, None)
    bench, model, after = revived(bench)
    assert after == before
    assert bench.learn(model, three_classes(30, 2))["sequence"] == 90
    bench.kill()


def test_a_snapshot_that_is_being_written_holds_what_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, model = learned(tmp_path)
    before = state_in(model, ROWS)
    bench.learn(model, three_classes(30, 1))
    save, may = SnapshotFiles.save, threading.Event()

    def slow(*given: Any) -> None:
        may.wait(30)
        save(*given)

    with monkeypatch.context() as patch:
        patch.setattr(SnapshotFiles, "save", slow)
        _, saving = bench.writer.snapshots.start(model)
        bench.writer.history.roll_back(model, 30)
        may.set()
        saving.result()
    bench, model, after = revived(bench)
    assert (after, model.published.sequence) == (before, 60)
    bench.kill()


def test_a_broken_model_learns_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What broke it stands in the log, and is left behind for good."""
    bench, model = learned(tmp_path)
    before = state_in(model, ROWS)

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "absorb", fail)
        bench.learn(model, three_classes(30, 1))
    assert model.describe()["status"] == "broken"
    told = bench.writer.history.roll_back(model, 30)
    assert (told["status"], told["sequence"], state_in(model, ROWS)) == ("ok", 60, before)
    assert bench.learn(model, three_classes(30, 2))["sequence"] == 90
    before = state_in(model, ROWS)
    bench, model, after = revived(bench)
    assert after == before
    bench.kill()


def test_what_was_learned_under_a_key_is_not_learned_again(tmp_path: Path) -> None:
    """Neither what was left behind, nor what came before the snapshot; also after a restart."""
    bench = Bench(tmp_path)
    model = bench.create(SPEC)
    first = bench.learn(model, three_classes(30), key=b"first")
    bench.snapshot(model)
    left = bench.learn(model, three_classes(30, 1), key=b"left")
    bench.writer.history.roll_back(model, 30)
    before = state_in(model, ROWS)
    for _ in range(2):
        for key, seed, answer in ((b"first", 0, first), (b"left", 1, left)):
            again = bench.learn(model, three_classes(30, seed), key=key)
            assert again == answer | {"replayed": True}
        assert (model.published.sequence, state_in(model, ROWS)) == (60, before)
        bench, model, _ = revived(bench)
    assert bench.learn(model, three_classes(30, 1), key=b"new")["sequence"] == 90
    bench.kill()


def test_what_broke_the_model_may_come_again_under_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused, and is left behind without ever having been learned."""
    bench, model = learned(tmp_path)
    samples = three_classes(30, 1)

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "absorb", fail)
        assert isinstance(bench.learn(model, samples, key=b"k"), NotYetLearned)
    bench.writer.history.roll_back(model, 30)
    answer = bench.learn(model, samples, key=b"k")
    assert (answer["sequence"], "replayed" in answer) == (90, False)
    bench, model, _ = revived(bench)
    assert bench.learn(model, samples, key=b"k") == answer | {"replayed": True}
    bench.kill()


def test_a_deleted_model(tmp_path: Path) -> None:
    bench, model = learned(tmp_path)
    bench.writer.history.roll_back(model, 30)
    bench.writer.models.delete(model)
    with pytest.raises(UnknownModel):
        bench.writer.history.roll_back(model, 30)
    bench = bench.restarted()
    assert bench.writer.models.all() == []
    bench.kill()


@pytest.mark.hard
def test_rollbacks_at_random_moments_of_kill_9(tmp_path: Path) -> None:
    """The server that was killed is the twin that was not, or it is one request ahead of it."""
    moments = random.Random(7)
    servers = [ServerProcess(tmp_path / n, snapshot_samples=10**9).start() for n in ("a", "b")]
    killed, twin = servers
    try:
        with (
            httpx.Client(base_url=killed.url, timeout=60) as client,
            httpx.Client(base_url=twin.url, timeout=60) as sure,
        ):
            for each in (client, sure):
                create(each, "m")
            todo = _requests(moments)
            for _ in range(10):
                timer = threading.Timer(moments.uniform(0.02, 0.4), killed.kill)
                timer.start()
                path, sent = next(todo)
                while (answered := _post(client, path, sent)) is not None:
                    assert _post(sure, path, sent) == answered
                    path, sent = next(todo)
                timer.join()
                killed.start()
                # What came to nothing is asked for again, so that both count the same samples.
                if path == "snapshot" or state_of(client, "m") == state_of(sure, "m"):
                    _post(client, path, sent)
                _post(sure, path, sent)
                assert state_of(client, "m") == state_of(sure, "m")
                sequences = {each.get("/v1/models/m").json()["sequence"] for each in (client, sure)}
                assert len(sequences) == 1
    finally:
        for server in servers:
            server.close()


def _requests(moments: random.Random) -> Iterator[tuple[str, Any]]:
    """Learn, snapshot, learn, go back to it, again and again."""
    sequence = 0
    for seed in range(10**6):
        samples = three_classes(moments.randint(20, 60), seed)
        yield "samples", body(samples)
        sequence += len(samples.y)
        back_to = sequence
        yield "snapshot", None
        samples = three_classes(moments.randint(1, 20), seed)
        yield "asset", body(samples)
        sequence += len(samples.y)
        yield "rollback", {"sequence": back_to}


def _post(client: httpx.Client, path: str, sent: Any) -> Any:
    """The status and the sequence; None where there is no answer."""
    try:
        answer = client.post(f"/v1/models/m/{path}", json=sent)
    except httpx.TransportError:
        return None
    assert answer.status_code in (200, 201), answer.text
    return answer.status_code, answer.json()["sequence"]


# -- refits -----------------------------------------------------------------------------


def test_fits_before_and_after_it_at_one_sequence(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    model = bench.create(FITTED)

    def refit(job: str) -> list[Any]:
        window = bench.writer.window(model)
        bench.writer.serve_fit(model, window, fit_window(window, job, lambda _: None))
        return state_in(model, ROWS)

    bench.learn(model, curve(50), "semiparametric")
    before = refit("1")
    bench.snapshot(model)
    bench.learn(model, curve(50, 1), "semiparametric")
    refit("2")
    bench.writer.history.roll_back(model, 50)
    bench, model, after = revived(bench)
    assert after == before
    before = refit("3")
    bench, model, after = revived(bench)
    assert after == before
    bench.kill()


def test_a_fit_of_a_window_from_before_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    model = bench.create(FITTED)
    bench.learn(model, curve(30), "semiparametric")
    back_to = bench.snapshot(model)
    old = bench.writer.window(model)
    bench.writer.history.roll_back(model, back_to)
    new = bench.writer.window(model)
    with pytest.raises(RefitFailed, match="ask for another refit"):
        bench.writer.serve_fit(model, old, fit_window(old, "1", lambda _: None))
    assert bench.writer.serve_fit(model, new, fit_window(new, "2", lambda _: None))["job"] == "2"
    bench.kill()


def test_rollback_ends_the_running_refit_only(client: httpx.Client, name: str) -> None:
    create(client, name, ENDLESS | {"semiparametric": ENDLESS["semiparametric"] | {"window": 2000}})
    X = np.random.default_rng(0).standard_normal((20, 2))
    client.post(f"/v1/models/{name}/samples", json={"x": X.tolist(), "y": X.sum(1).tolist()})
    back_to = snapshot(client, name)
    X = np.random.default_rng(1).uniform(0.0, 10.0, (2000, 2))
    y = np.sin(X[:, 0]) + np.random.default_rng(2).standard_normal(2000)
    client.post(f"/v1/models/{name}/samples", json={"x": X.tolist(), "y": y.tolist()})
    job = running(client, ask(client, name))
    roll_back(client, name, back_to)
    told = ended(client, job)
    assert told["status"] == "failed"
    assert "rolled back; ask for another refit" in told["error"]["detail"]
    assert client.get(f"/v1/models/{name}").json()["heads"]["semiparametric"]["fit"] is None
    again = refitted(client, name)
    assert again["samples"] == 20


# -- refused ----------------------------------------------------------------------------


def test_a_snapshot_that_there_is_not(client: httpx.Client, name: str) -> None:
    create(client, name)
    path = f"/v1/models/{name}/rollback"
    detail = refused(client.post(path, json={"sequence": 5}), 404, "unknown-snapshot")
    assert "POST .../snapshot makes one" in detail
    learn(client, name)
    kept = [snapshot(client, name)]
    learn(client, name)
    kept.insert(0, snapshot(client, name))
    before = state_of(client, name)
    detail = refused(client.post(path, json={"sequence": 5}), 404, "unknown-snapshot")
    assert detail.endswith(f"the snapshots have sequences {kept[0]}, {kept[1]}")
    assert state_of(client, name) == before
    unknown = client.post("/v1/models/nobody/rollback", json={"sequence": 5})
    refused(unknown, 404, "unknown-model")


def test_a_damaged_snapshot(client: httpx.Client, name: str, server: ServerProcess) -> None:
    create(client, name)
    learn(client, name, 331)
    back_to = snapshot(client, name)
    learn(client, name)
    (path,) = server.data.glob(f"snapshots/*/{back_to:020d}.snapshot")
    damage(path)
    before = state_of(client, name)
    answer = client.post(f"/v1/models/{name}/rollback", json={"sequence": back_to})
    assert "checksum" in refused(answer, 409, "unusable-snapshot")
    assert state_of(client, name) == before


@pytest.mark.parametrize(
    ("sent", "pointer"),
    [
        ({}, "/sequence"),
        ({"sequence": "5"}, "/sequence"),
        ({"sequence": -1}, "/sequence"),
        ({"sequence": 1.5}, "/sequence"),
        ({"sequence": True}, "/sequence"),
        ({"sequence": 1, "to": 2}, "/to"),
        ([1], ""),
    ],
)
def test_a_body_that_says_something_else(
    client: httpx.Client, name: str, sent: Any, pointer: str
) -> None:
    create(client, name)
    answer = client.post(f"/v1/models/{name}/rollback", json=sent)
    assert '{"sequence": N}' in refused(answer, 422, "invalid")
    assert [item["pointer"] for item in answer.json()["errors"]] == [pointer]


def test_bodies_of_other_formats(client: httpx.Client, name: str) -> None:
    create(client, name)
    learn(client, name)
    packed = msgpack.packb({"sequence": snapshot(client, name)})
    path = f"/v1/models/{name}/rollback"
    headers = {"content-type": "application/vnd.msgpack"}
    answer = client.post(path, content=packed, headers=headers)
    assert msgpack.unpackb(answer.content)["rolled_back"]["to"] == 120
    headers = {"content-type": "application/json"}
    for content in (b"", b"{"):
        refused(client.post(path, content=content, headers=headers), 400, "unreadable")
