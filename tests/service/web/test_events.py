"""What is to be watched of a model: events, and the numbers of the last hours."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, two_classes
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import add_key, revoke_key
from wolfstream.service.monitor import producer, webhook

Event = dict[str, Any]


def looks_often() -> None:
    """Make the server of this process look at its models and alerts ten times a second."""
    patch = pytest.MonkeyPatch()
    patch.setattr(producer, "_EVENT_SECONDS", 0.1)
    patch.setattr(webhook, "_LOOK_SECONDS", 0.1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("events") / "data")
    running.prelude = looks_often
    with closing(running.start()):
        yield running


def events_of(lines: Iterator[str]) -> Iterator[Event]:
    """Events as a reader of the specification of Server-Sent Events gets them."""
    event: Event = {}
    for line in lines:
        if not line:
            yield event
            event = {}
            continue
        name, _, value = line.partition(": ")
        event[name] = json.loads(value) if name == "data" else value


@contextmanager
def listening(client: httpx.Client, name: str, **headers: str) -> Iterator[Iterator[Event]]:
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    with client.stream("GET", f"/v1/models/{name}/events", headers=given) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield events_of(response.iter_lines())


def test_an_event_is_small_however_wide_the_table_is(server: ServerProcess) -> None:
    spec = {"working_set": None, "adaptive": None, "serve": "asset", "asset": {"dimension": 16}}
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for columns, are_named in ((64, True), (2000, False)):
            path = f"/v1/models/wide-{columns}"
            client.put(path, json=spec).raise_for_status()
            names = ["n" * 240 + str(i) for i in range(columns)]
            body = {"names": names, "x": [[1] * columns, [2] * columns], "y": [1, 2]}
            client.post(f"{path}/asset", json=body).raise_for_status()
            with listening(client, f"wide-{columns}") as events:
                state = next(events)["data"]
            assert len(json.dumps(state)) < 1 << 16
            assert (state["columns"] is not None) == are_named
            assert state["features"] == columns
            assert [one["name"] for one in client.get(path).json()["columns"]] == names


def create(client: httpx.Client, name: str, n: int = 60) -> None:
    assert client.put(f"/v1/models/{name}", json=PAPERS | {"asset": None}).status_code == 201
    learn(client, name, n)


def learn(client: httpx.Client, name: str, n: int, seed: int = 0) -> None:
    sent = client.post(f"/v1/models/{name}/samples", json=body(two_classes(n, seed)))
    assert sent.status_code == 200


def test_an_event_is_the_state_of_the_model(client: httpx.Client, name: str):
    create(client, name)
    with listening(client, name) as events:
        first = next(events)
    assert first["event"] == "state"
    state = first["data"]
    assert (state["model"], state["sequence"], state["status"]) == (name, 60, "ok")
    described = client.get(f"/v1/models/{name}").json()
    assert state["epoch"] == described["epoch"]
    assert state["heads"] == described["heads"]
    scores = described["heads"]["working_set"]["prequential"]
    assert state["values"]["working_set.accuracy"] == pytest.approx(scores["recent_accuracy"])
    assert state["values"]["majority.accuracy"] == pytest.approx(scores["recent_majority_accuracy"])
    assert len(state["latest"]) == 10
    assert set(state["latest"][-1]) == {"prediction", "label"}
    assert state["last_row"] == two_classes(60).X[-1].tolist()


def test_the_next_event_shows_what_was_learned_since(client: httpx.Client, name: str):
    create(client, name)
    with listening(client, name) as events:
        assert next(events)["data"]["sequence"] == 60
        learn(client, name, 40, seed=1)
        later = next(event for event in events if event["data"]["sequence"] == 100)
        assert next(events)["data"]["values"]["samples_per_second"] > 0
    assert later["data"]["latest"][-1]["label"] == two_classes(40, 1).y[-1]


def test_latency_is_that_of_requests_to_the_model(client: httpx.Client, name: str):
    other, question = f"{name}-beside", {"x": two_classes(1).X[0].tolist()}
    create(client, name)
    create(client, other)
    with listening(client, name) as events:
        next(events)
        learn(client, other, 40, seed=1)
        client.post(f"/v1/models/{other}/predict", json=question).raise_for_status()
        values = [next(events)["data"]["values"] for _ in range(2)][-1]
        assert (values["learn_seconds"], values["predict_seconds"]) == (None, None)
        learn(client, name, 40, seed=1)
        client.post(f"/v1/models/{name}/predict", json=question).raise_for_status()
        later = (event["data"]["values"] for event in events)
        assert any(values["learn_seconds"] and values["predict_seconds"] for values in later)


def test_a_listener_that_comes_back_gets_what_it_missed(client: httpx.Client, name: str):
    create(client, name)
    with listening(client, name) as events:
        seen = [next(events)["id"], next(events)["id"]]
        others = [next(events)["id"], next(events)["id"]]
    with listening(client, name, last_event_id=seen[-1]) as events:
        assert [next(events)["id"], next(events)["id"]] == others


@pytest.mark.parametrize("unknown", ["nonsense", "0badcafe-1", "-", "x-99999999999999999999999"])
def test_an_unknown_id_begins_with_the_newest(client: httpx.Client, name: str, unknown: str):
    create(client, name)
    with listening(client, name) as events:
        last = [next(events)["id"] for _ in range(2)][-1]
    with listening(client, name, last_event_id=unknown) as events:
        number = int(next(events)["id"].rpartition("-")[2])
    assert number >= int(last.rpartition("-")[2])


def test_all_listeners_get_the_same_events(client: httpx.Client, name: str):
    create(client, name)
    with listening(client, name) as one, listening(client, name) as other:
        next(one)
        mine = [next(one) for _ in range(2)]
        theirs = [next(other) for _ in range(3)]
    assert mine[0] in theirs


def test_a_deleted_model_ends_its_listeners(client: httpx.Client, name: str):
    create(client, name)
    with listening(client, name) as events:
        next(events)
        client.delete(f"/v1/models/{name}")
        rest = list(events)
    assert rest[-1]["event"] == "end"
    assert rest[-1]["data"] == {"reason": "deleted"}


def test_nobody_listens_to_a_model_that_is_not_there(client: httpx.Client):
    assert client.get("/v1/models/nobody/events").status_code == 404
    assert client.get("/v1/models/nobody/metrics/history").status_code == 404


def test_a_listener_is_no_slow_request(client: httpx.Client, server: ServerProcess, name: str):
    create(client, name)
    with listening(client, name) as events:
        for _ in range(3):
            next(events)
    time.sleep(0.2)
    assert "/events 200" not in server.log()


def test_listeners_take_connections_and_leave_with_their_key(tmp_path: Path):
    server = ServerProcess(tmp_path / "data", connections=2)
    server.prelude = looks_often
    server.data.mkdir()
    keys = KeyFile(server.data)
    bearers = {
        name: {"Authorization": f"Bearer {add_key(keys, name, ('admin',))}"}
        for name in ("page", "other")
    }
    server.start()
    try:
        with httpx.Client(base_url=server.url, headers=bearers["page"], timeout=30) as client:
            create(client, "m")
            with listening(client, "m") as one, listening(client, "m") as other:
                next(one), next(other)
                crowded = httpx.get(f"{server.url}/v1/models", headers=bearers["other"])
                assert crowded.status_code == 503
                revoke_key(keys, "page")
                assert [event["data"] for event in (*one, *other)][-1] == {"reason": "key"}
    finally:
        server.close()


def test_a_stop_ends_listeners_and_the_numbers_survive_it(tmp_path: Path):
    server = ServerProcess(tmp_path / "data").start()
    try:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            create(client, "m")
            found: list[Event] = []
            with listening(client, "m") as events:
                found.append(next(events))
                before = _history_with_points(client)
                listener = threading.Thread(target=lambda: found.extend(events))
                listener.start()
                assert server.terminate() == 0
                listener.join(10)
                assert not listener.is_alive()
            assert found[-1]["data"] == {"reason": "stopping"}
            server.start()
            after = client.get("/v1/models/m/metrics/history").json()
    finally:
        server.close()
    assert after["time"][: len(before["time"])] == before["time"]
    assert after["numbers"]["sequence"][0] == 60
    assert before["numbers"].keys() >= {"working_set.accuracy", "majority.accuracy"}


def _history_with_points(client: httpx.Client) -> Any:
    """The history, once it has a point of what was learned."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        history = client.get("/v1/models/m/metrics/history").json()
        if 60 in history["numbers"].get("sequence", []):
            return history
        time.sleep(0.2)
    raise AssertionError("no point was written")
