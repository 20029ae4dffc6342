"""Going back to a snapshot: durable before it is answered, and never undone by a restart."""

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest

from service.errors import RefitFailed, StorageFailed, UnknownModel
from service.fits import fit_window
from service.log import Log
from service.model import Model
from service.settings import Settings
from service.snapshots import Snapshots
from service.spec import ModelSpec
from service.writer import LearnRequest, Writer
from tests.service.process import ServerProcess
from tests.service.streams import body, curve, part, three_classes, two_classes
from tests.service.test_recovery import GRID, SPEC
from tests.service.test_refit import ENDLESS, ask, ended, refitted, running

FITTED = {"task": "regression", "asset": {"dimension": 16}, "semiparametric": {"tol": 0.1}}


@pytest.fixture(scope="module")
def never(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that makes snapshots when it is asked to, or stops; started again by many tests."""
    process = ServerProcess(
        tmp_path_factory.mktemp("never") / "data", snapshot_samples=10**9
    ).start()
    yield process
    process.close()


@pytest.fixture
def client(never: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=never.url, timeout=60) as http:
        yield http


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


def sequence_of(client: httpx.Client, name: str) -> int:
    sequence: int = client.get(f"/v1/models/{name}").json()["sequence"]
    return sequence


def restart(server: ServerProcess) -> None:
    server.kill()
    server.start()


def damage(server: ServerProcess, sequence: int) -> None:
    """Of the only model that has a snapshot of this sequence."""
    (path,) = server.data.glob(f"snapshots/*/{sequence:020d}.snapshot")
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


def test_what_is_learned_next_is_learned_by_the_model_that_was(tmp_path: Path) -> None:
    """As if the samples between the snapshot and the rollback had never been there."""
    server = ServerProcess(tmp_path / "data").start()
    try:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            for name in ("never", "back"):
                create(client, name)
                learn(client, name)
                snapshot(client, name)
            learn(client, "back", seed=1)
            roll_back(client, "back", 120)
            learn(client, "never", 100, seed=2)
            learn(client, "back", 100, seed=2)
            assert state_of(client, "back") == state_of(client, "never")
    finally:
        server.close()


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
    client: httpx.Client, name: str, never: ServerProcess
) -> None:
    create(client, name)
    learn(client, name)
    back_to = snapshot(client, name)
    done, seen = threading.Event(), []

    def predict() -> None:
        with httpx.Client(base_url=never.url, timeout=60) as http:
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
    client: httpx.Client, name: str, never: ServerProcess
) -> None:
    create(client, name)
    learn(client, name)
    back_to, before = snapshot(client, name), state_of(client, name)
    at = learn(client, name, seed=1)
    told = roll_back(client, name, back_to)
    restart(never)
    assert state_of(client, name) == before
    again = client.get(f"/v1/models/{name}").json()
    assert (again["sequence"], again["rolled_back"]) == (at, told["rolled_back"])
    learn(client, name, 50, seed=2)
    after = state_of(client, name)
    restart(never)
    assert state_of(client, name) == after
    assert never.terminate() == 0
    never.start()
    assert state_of(client, name) == after
    assert client.get(f"/v1/models/{name}").json()["rolled_back"] == told["rolled_back"]


def test_a_snapshot_of_what_was_left_does_not_bring_it_back(
    client: httpx.Client, name: str, never: ServerProcess
) -> None:
    """The newest snapshot has the same sequence as the rollback, and is older than it."""
    create(client, name)
    learn(client, name)
    back_to, before = snapshot(client, name), state_of(client, name)
    learn(client, name, seed=1)
    left, undone = snapshot(client, name), state_of(client, name)
    roll_back(client, name, back_to)
    restart(never)
    assert state_of(client, name) == before
    # It is also the way forward again.
    roll_back(client, name, left)
    assert state_of(client, name) == undone
    restart(never)
    assert state_of(client, name) == undone
    assert sequence_of(client, name) == left


def test_a_snapshot_at_the_sequence_of_a_rollback_replaces_the_one_before(
    client: httpx.Client, name: str, never: ServerProcess
) -> None:
    create(client, name)
    learn(client, name)
    back_to, before = snapshot(client, name), state_of(client, name)
    learn(client, name, seed=1)
    snapshot(client, name)
    roll_back(client, name, back_to)
    at = snapshot(client, name)
    restart(never)
    assert state_of(client, name) == before
    learn(client, name, seed=2)
    roll_back(client, name, at)
    assert state_of(client, name) == before


@pytest.mark.parametrize("damaged", ["the one it went back to", "the one after", "both"])
def test_damaged_snapshots_fall_back_to_the_rolled_back_state(tmp_path: Path, damaged: str) -> None:
    server = ServerProcess(tmp_path / "data", snapshot_samples=10**9).start()
    try:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            create(client, "m")
            learn(client, "m", 30)
            snapshot(client, "m")
            learn(client, "m", 30, seed=3)
            back_to = snapshot(client, "m")
            learn(client, "m", seed=1)
            roll_back(client, "m", back_to)
            learn(client, "m", 30, seed=2)
            after = snapshot(client, "m")
            learn(client, "m", 30, seed=4)
            state = state_of(client, "m")
            server.kill()
            if damaged != "the one after":
                damage(server, back_to)
            if damaged != "the one it went back to":
                damage(server, after)
            server.start()
            assert state_of(client, "m") == state
            restart(server)
            assert state_of(client, "m") == state
    finally:
        server.close()


def test_snapshots_after_it_make_its_record_superfluous(tmp_path: Path) -> None:
    """It takes the room of a state, until two snapshots are newer than it."""
    server = ServerProcess(tmp_path / "data", snapshot_samples=10**9).start()
    try:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            create(client, "m")
            learn(client, "m", 30)
            roll_back(client, "m", snapshot(client, "m"))
            held = []
            for seed in range(3):
                learn(client, "m", 30, seed)
                snapshot(client, "m")
                log = Log(server.data / "log.sqlite", read_only=True)
                held.append(log.rolled_back_at(1))
                log.close()
            assert held == [60, None, None]
            state = state_of(client, "m")
            restart(server)
            assert state_of(client, "m") == state
    finally:
        server.close()


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
            for _ in range(4):
                timer = threading.Timer(moments.uniform(0.02, 0.4), killed.kill)
                timer.start()
                path, sent = next(todo)
                while (answered := _post(client, path, sent)) is not None:
                    assert _post(sure, path, sent) == answered
                    path, sent = next(todo)
                timer.join()
                killed.start()
                if state_of(client, "m") != state_of(sure, "m") or path == "snapshot":
                    _post(sure, path, sent)
                if path == "snapshot":
                    _post(client, path, sent)
                assert state_of(client, "m") == state_of(sure, "m")
                assert sequence_of(client, "m") == sequence_of(sure, "m")
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


def post(client: httpx.Client, name: str, n: int, seed: int = 0) -> None:
    client.post(f"/v1/models/{name}/samples", json=body(curve(n, seed))).raise_for_status()


def test_fits_before_and_after_it_at_one_sequence(
    client: httpx.Client, name: str, never: ServerProcess
) -> None:
    create(client, name, FITTED)
    post(client, name, 50)
    refitted(client, name)
    back_to, before = snapshot(client, name), state_of(client, name)
    post(client, name, 50, seed=1)
    refitted(client, name)
    roll_back(client, name, back_to)
    assert state_of(client, name) == before
    restart(never)
    assert state_of(client, name) == before
    refitted(client, name)
    after = state_of(client, name)
    assert after != before
    restart(never)
    assert state_of(client, name) == after


def test_a_refit_that_runs_is_ended_and_the_next_one_is_not(
    client: httpx.Client, name: str
) -> None:
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


def refused(answer: httpx.Response, status: int, slug: str) -> str:
    told = answer.json()
    assert (answer.status_code, told["type"]) == (status, f"urn:wolfstream:{slug}"), told
    detail: str = told["detail"]
    return detail


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
    assert detail.endswith(f"there are those of {kept[0]}, {kept[1]}")
    assert state_of(client, name) == before
    unknown = client.post("/v1/models/nobody/rollback", json={"sequence": 5})
    refused(unknown, 404, "unknown-model")


def test_a_damaged_snapshot(client: httpx.Client, name: str, never: ServerProcess) -> None:
    create(client, name)
    learn(client, name, 331)
    back_to = snapshot(client, name)
    learn(client, name)
    damage(never, back_to)
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
    headers = {"content-type": "application/vnd.msgpack"}
    answer = client.post(f"/v1/models/{name}/rollback", content=packed, headers=headers)
    assert msgpack.unpackb(answer.content)["rolled_back"]["to"] == 120
    path = f"/v1/models/{name}/rollback"
    refused(
        client.post(path, content=b"{", headers={"content-type": "application/json"}),
        400,
        "unreadable",
    )
    refused(
        client.post(path, content=b"", headers={"content-type": "application/json"}),
        400,
        "unreadable",
    )


# -- the writer alone -------------------------------------------------------------------


class Bench:
    """A writer without a server around it."""

    def __init__(self, data: Path) -> None:
        self.replies: list[Any] = []
        self.loop = asyncio.new_event_loop()
        self.writer = Writer(
            Settings(data=data, snapshot_samples=10**9), lambda given, _: self.replies.extend(given)
        )
        self.writer.recover()

    def learn(self, model: Model, n: int = 30, seed: int = 0) -> Any:
        request = LearnRequest(
            model, "working_set", two_classes(n, seed), self.loop.create_future()
        )
        self.writer.handle([request])
        return self.replies[-1][1]

    def snapshot(self, model: Model) -> int:
        sequence, saving = self.writer.snapshot(model)
        saving.result()
        self.writer.finish_saves()
        return sequence

    def close(self) -> None:
        """Leave as kill -9 does: no snapshot at the end."""
        self.writer.models.clear()
        self.writer.close()
        self.loop.close()


def said(model: Model) -> Any:
    return model.published.heads["working_set"].predict(two_classes(20, 9).X)


def test_a_crash_between_writing_it_and_going_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    model, _ = bench.writer.create("m", ModelSpec())
    bench.learn(model)
    back_to, before = bench.snapshot(model), said(model)
    bench.learn(model, seed=1)

    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Model, "roll_back", crash)
        with pytest.raises(KeyboardInterrupt):
            bench.writer.roll_back(model, back_to)
    bench.close()
    bench = Bench(tmp_path)
    again = bench.writer.models["m"]
    assert (said(again), again.sequence) == (before, 60)
    bench.close()


def test_one_that_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    model, _ = bench.writer.create("m", ModelSpec())
    bench.learn(model)
    back_to = bench.snapshot(model)
    bench.learn(model, seed=1)
    before = said(model)

    def full(*_: Any) -> None:
        raise StorageFailed("no space left on device")

    monkeypatch.setattr(Log, "append_rollback", full)
    with pytest.raises(StorageFailed):
        bench.writer.roll_back(model, back_to)
    assert (said(model), model.rolled_back, model.line) == (before, None, 0)
    assert bench.learn(model)["sequence"] == 90
    bench.close()


def test_a_broken_model_learns_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What broke it stands in the log, and is left behind for good."""
    bench = Bench(tmp_path)
    model, _ = bench.writer.create("m", ModelSpec())
    bench.learn(model)
    back_to, before = bench.snapshot(model), said(model)

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(Model, "absorb", fail)
        bench.learn(model)
    assert model.describe()["status"] == "broken"
    told = bench.writer.roll_back(model, back_to)
    assert (told["status"], told["sequence"], said(model)) == ("ok", 60, before)
    assert bench.learn(model, seed=2)["sequence"] == 90
    after = said(model)
    bench.close()
    bench = Bench(tmp_path)
    assert said(bench.writer.models["m"]) == after
    bench.close()


def test_a_fit_of_a_window_from_before_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    spec = ModelSpec.model_validate(FITTED)
    model, _ = bench.writer.create("m", spec)
    request = LearnRequest(model, "semiparametric", curve(30), bench.loop.create_future())
    bench.writer.handle([request])
    back_to = bench.snapshot(model)
    old = bench.writer.window(model)
    bench.writer.roll_back(model, back_to)
    new = bench.writer.window(model)
    with pytest.raises(RefitFailed, match="ask for another refit"):
        bench.writer.keep(model, old, fit_window(old, "1", lambda _: None))
    assert bench.writer.keep(model, new, fit_window(new, "2", lambda _: None))["job"] == "2"
    bench.close()


def test_a_snapshot_that_is_being_written_holds_what_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    model, _ = bench.writer.create("m", ModelSpec())
    bench.learn(model)
    back_to, before = bench.snapshot(model), said(model)
    bench.learn(model, seed=1)
    save, may = Snapshots.save, threading.Event()

    def slow(*given: Any) -> None:
        may.wait(30)
        save(*given)

    monkeypatch.setattr(Snapshots, "save", slow)
    _, saving = bench.writer.snapshot(model)
    bench.writer.roll_back(model, back_to)
    may.set()
    saving.result()
    bench.close()
    bench = Bench(tmp_path)
    again = bench.writer.models["m"]
    assert (said(again), again.sequence) == (before, 60)
    bench.close()


def test_a_deleted_model(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    model, _ = bench.writer.create("m", ModelSpec())
    bench.learn(model)
    back_to = bench.snapshot(model)
    bench.writer.delete(model)
    with pytest.raises(UnknownModel):
        bench.writer.roll_back(model, back_to)
    bench.close()


def test_it_takes_effect_in_the_order_of_requests(client: httpx.Client, name: str) -> None:
    """Learning that was sent before it is undone, what was sent after it is not."""
    create(client, name)
    learn(client, name)
    back_to = snapshot(client, name)
    learn(client, name, seed=1)
    roll_back(client, name, back_to)
    time.sleep(0.01)
    learn(client, name, seed=2)
    told = client.get(f"/v1/models/{name}").json()
    judged = told["heads"]["asset"]["prequential"]["samples"]
    assert told["sequence"] == 360
    assert 60 < judged < 120
