"""Labels that come later, over HTTP, websocket and in the clients, against a real server."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, curve, part, two_classes
from tests.service.web.test_stream import JSON, MSGPACK, open_stream
from wolfstream import AsyncClient, Client
from wolfstream.service.client.errors import Refused

SPEC = PAPERS | {"kernel": {"type": "linear"}, "asset": None}
SAMPLES = two_classes(60)
ROWS: Any = SAMPLES.X
PACKED = {"content-type": "application/vnd.msgpack"}


@pytest.fixture
def path(client: httpx.Client, name: str) -> Iterator[str]:
    """A model of twenty samples."""
    path = f"/v1/models/{name}"
    client.put(path, json=SPEC).raise_for_status()
    client.post(f"{path}/samples", json=body(part(SAMPLES, 0, 20))).raise_for_status()
    yield path
    client.delete(path)


def predict(client: httpx.Client, path: str, ids: Any, start: int = 20, n: int = 2) -> Any:
    sent = {"x": ROWS[start : start + n].tolist(), "ids": ids}
    return client.post(f"{path}/predict", json=sent)


def label(client: httpx.Client, path: str, ids: Any, y: Any, **headers: str) -> Any:
    return client.post(f"{path}/labels", json={"ids": ids, "y": y}, headers=headers)


def test_a_row_is_learned_when_its_label_comes(client: httpx.Client, path: str) -> None:
    told = predict(client, path, ["a", 2]).raise_for_status().json()
    assert told["ids"] == ["a", 2]
    plain = client.post(f"{path}/predict", json={"x": ROWS[20:22].tolist()}).json()
    assert told == plain | {"ids": ["a", 2]}
    answer = label(client, path, [2, "a", "b"], ["yes", "no", "no"])
    assert answer.raise_for_status().json() == {
        "model": path.rpartition("/")[2],
        "sequence": 22,
        "epoch": told["epoch"],
        "learned": 2,
        "results": {
            "status": ["learned", "learned", "unknown"],
            "prediction": [*told["prediction"][::-1], None],
        },
    }
    assert answer.headers["etag"] == f'"{told["epoch"]}:22"'
    after = client.post(f"{path}/predict?min_sequence=22", json={"x": ROWS[:1].tolist()})
    assert after.json()["sequence"] == 22


def test_auto_makes_ids(client: httpx.Client, path: str) -> None:
    first, second = (predict(client, path, "auto").json()["ids"] for _ in range(2))
    assert len({*first, *second}) == 4
    told = label(client, path, first + second, ["yes"] * 4).json()
    assert told["results"]["status"] == ["learned"] * 4


def test_one_row_and_its_label(client: httpx.Client, path: str) -> None:
    sent = {"x": ROWS[20].tolist(), "ids": ["one"]}
    client.post(f"{path}/predict", json=sent).raise_for_status()
    assert label(client, path, ["one"], ["no"]).json()["learned"] == 1


def test_a_prediction_that_is_sent_again_says_so(client: httpx.Client, path: str) -> None:
    first, again = (predict(client, path, ["a", "b"]) for _ in range(2))
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == first.json() | {"decision": [None, None]}
    other = predict(client, path, ["b", "c"], 30)
    problem = other.json()
    assert (other.status_code, problem["type"]) == (409, "urn:wolfstream:id-taken")
    assert [error["pointer"] for error in problem["errors"]] == ["/ids/0"]


@pytest.mark.parametrize(
    ("ids", "pointer"),
    [
        ("Auto", "/ids"),
        (None, "/ids"),
        ({"a": 1}, "/ids"),
        (["a"], "/ids"),
        (["a", "a"], "/ids/1"),
        (["a", True], "/ids/1"),
        (["a", 1.0], "/ids/1"),
        (["", "a"], "/ids/0"),
        (["a", "b" * 129], "/ids/1"),
        (["a", 2**63], "/ids/1"),
        (["a", ["b"]], "/ids/1"),
    ],
)
def test_wrong_ids_of_rows_are_refused(
    client: httpx.Client, path: str, ids: Any, pointer: str
) -> None:
    sent = json.dumps({"x": ROWS[20:22].tolist(), "ids": ids})
    answer = client.post(f"{path}/predict", content=sent)
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert client.get(path).json()["pending"]["rows"] == 0


@pytest.mark.parametrize(
    ("sent", "pointers"),
    [
        ([], ["/ids", "/y"]),
        ({}, ["/ids", "/y"]),
        ({"ids": ["a"], "y": ["no"], "x": [[1]]}, ["/x"]),
        ({"ids": [], "y": []}, ["/ids"]),
        ({"ids": "auto", "y": ["no"]}, ["/ids"]),
        ({"ids": ["a"], "y": "no"}, ["/y"]),
        ({"ids": ["a", "b"], "y": ["no"]}, ["/y"]),
        ({"ids": ["a", "b"], "y": ["no", 0.5]}, ["/y/1"]),
        ({"ids": ["a", None], "y": ["no", "no"]}, ["/ids/1"]),
    ],
)
def test_wrong_bodies_of_labels_are_refused(
    client: httpx.Client, path: str, sent: Any, pointers: list[str]
) -> None:
    predict(client, path, ["a", "b"])
    answer = client.post(f"{path}/labels", json=sent)
    assert answer.status_code == 422, answer.text
    assert sorted(error["pointer"] for error in answer.json().get("errors", [])) == pointers
    assert client.get(path).json()["sequence"] == 20


@pytest.mark.parametrize("y", [1e300, -1e300, None, "far"])
def test_labels_that_are_no_targets_are_refused(client: httpx.Client, name: str, y: Any) -> None:
    path = f"/v1/models/{name}-numbers"
    client.put(path, json={"task": "regression"}).raise_for_status()
    samples = {"x": ROWS[:20].tolist(), "y": ROWS[:20, 0].tolist()}
    client.post(f"{path}/samples", json=samples).raise_for_status()
    predict(client, path, ["a", "b"]).raise_for_status()
    answer = label(client, path, ["a", "b"], [0.5, y])
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/y/1"]
    assert client.get(path).json()["sequence"] == 20
    assert label(client, path, ["a", "b"], [0.5, 0.25]).json()["learned"] == 2
    client.delete(path)


def test_only_the_head_that_serves_takes_ids(client: httpx.Client, path: str) -> None:
    sent = {"x": ROWS[:1].tolist(), "ids": ["a"]}
    other = client.post(f"{path}/predict?head=asset", json=sent)
    assert other.status_code == 409
    assert client.post(f"{path}/predict?head=working_set", json=sent).status_code == 200


def test_labels_for_a_state(client: httpx.Client, path: str) -> None:
    epoch = predict(client, path, ["a", "b"]).json()["epoch"]
    state = {"if-match": f'"{epoch}:20"'}
    assert label(client, path, ["a"], ["no"], **state).status_code == 200
    assert label(client, path, ["b"], ["no"], **state).status_code == 412
    assert label(client, path, ["b"], ["no"], **{"if-match": f'"{epoch}"'}).status_code == 200


def test_too_many_labels_are_refused(client: httpx.Client, path: str) -> None:
    n = 100_001
    assert label(client, path, list(range(n)), ["no"] * n).status_code == 413


def csv(client: httpx.Client, path: str, text: str, query: str = "") -> Any:
    headers = {"content-type": "text/csv; charset=utf-8"}
    return client.post(f"{path}/labels{query}", content=text.encode(), headers=headers)


def test_labels_in_csv(client: httpx.Client, path: str) -> None:
    told = predict(client, path, ["a", 7]).json()
    answer = csv(client, path, "id,amount,label\n7,3.5,yes\na,,no\n")
    results = {"status": ["learned"] * 2, "prediction": told["prediction"][::-1]}
    assert answer.raise_for_status().json()["results"] == results
    predict(client, path, ["b"], 22, 1)
    answer = csv(client, path, "Outcome;order\nno;b\n", "?label=Outcome&id=order")
    assert answer.raise_for_status().json()["results"]["status"] == ["learned"]


@pytest.mark.parametrize(
    ("text", "query", "detail"),
    [
        ("order,label\na,no\n", "", "there is no column 'id'"),
        ("id,Outcome\na,no\n", "", "none of the columns is named y, label"),
        ("id,label\na,\n", "", "the label is missing"),
        ("id,label\na\n", "", "has 1 columns"),
        ("id,label\n", "", "is empty"),
        ("id,label\na,no\n", "?id=label", "must be different columns"),
    ],
)
def test_csv_that_has_no_labels_is_refused(
    client: httpx.Client, path: str, text: str, query: str, detail: str
) -> None:
    predict(client, path, ["a"], 20, 1)
    answer = csv(client, path, text, query)
    assert answer.status_code == 422, answer.text
    assert detail in answer.text
    assert client.get(path).json()["pending"]["rows"] == 1


def test_messagepack(client: httpx.Client, path: str) -> None:
    X = np.ascontiguousarray(ROWS[20:22])
    raw = {"dtype": "<f8", "shape": [2, 4], "data": X.tobytes()}
    sent = msgpack.packb({"x": raw, "ids": ["a", 7]})
    told = msgpack.unpackb(client.post(f"{path}/predict", content=sent, headers=PACKED).content)
    labels = msgpack.packb({"ids": ["a", 7], "y": ["no", "yes"]})
    answer = client.post(f"{path}/labels", content=labels, headers=PACKED)
    results = msgpack.unpackb(answer.content)["results"]
    assert results == {"status": ["learned"] * 2, "prediction": told["prediction"]}


@pytest.mark.parametrize("media_type", ["application/x-ndjson", "text/x-libsvm"])
def test_other_lines_bring_no_labels(client: httpx.Client, path: str, media_type: str) -> None:
    answer = client.post(f"{path}/labels", content="a,no\n", headers={"content-type": media_type})
    assert answer.status_code == 415


def test_the_description_and_the_metrics_count_them(client: httpx.Client, path: str) -> None:
    predict(client, path, ["a", "b"])
    label(client, path, ["a", "c"], ["no", "no"])
    label(client, path, ["a"], ["yes"])
    pending = client.get(path).json()["pending"]
    assert pending["since"].endswith("Z")
    assert pending["bytes"] > 0
    assert {name: pending[name] for name in ("rows", "joined", "expired")} == {
        "rows": 1,
        "joined": 1,
        "expired": 0,
    }
    told = client.get("/metrics").text
    model = path.rpartition("/")[2]
    assert f'wolfstream_rows_waiting{{model="{model}"}} 1.0' in told
    for status, number in (("learned", 1), ("unknown", 1), ("conflict", 1), ("replayed", 0)):
        labels = f'{{model="{model}",status="{status}"}}'
        assert f"wolfstream_labels_total{labels} {number}.0" in told
    assert 'wolfstream_label_delay_duration_seconds_bucket{le="1.0"}' in told
    of_head = f'{{head="working_set",model="{model}"}}'
    counted = dict(line.rsplit(" ", 1) for line in told.splitlines() if model in line)
    received, learned, rejected, again = (
        float(counted[f"wolfstream_samples_{name}_total{of_head}"])
        for name in ("received", "learned", "rejected", "duplicate")
    )
    assert (received, learned, rejected, again) == (23, 21, 2, 0)


@pytest.mark.parametrize("protocol", [JSON, MSGPACK])
def test_frames_of_a_stream(
    server: ServerProcess, client: httpx.Client, path: str, protocol: Any
) -> None:
    with open_stream(server, path.rpartition("/")[2], protocol) as stream:
        stream.receive()
        x = ROWS[20:23].tolist()
        told = stream.ask({"id": 1, "op": "predict", "x": x, "ids": ["a", "b", "c"]})
        assert told["ids"] == ["a", "b", "c"]
        answer = stream.ask({"id": 2, "op": "label", "ids": ["b", "d"], "y": ["no", "no"]})
        assert (answer["id"], answer["learned"]) == (2, 1)
        assert answer["results"]["status"] == ["learned", "unknown"]
        state = f"{told['epoch']}:20"
        frame = {"id": 3, "op": "label", "ids": ["a"], "y": ["no"], "if_match": state}
        assert stream.ask(frame)["error"]["status"] == 412
        wrong = stream.ask({"id": 4, "op": "label", "ids": ["a"], "x": [1.0]})
        assert [error["pointer"] for error in wrong["error"]["errors"]] == ["/x"]
        again = stream.ask({"id": 5, "op": "predict", "x": x[:1], "ids": ["b"]})
        assert again["error"]["type"] == "urn:wolfstream:id-taken"
    assert client.get(path).json()["pending"]["rows"] == 2


class TestClient:
    def test_predict_and_label(self, server: ServerProcess, path: str):
        name = path.rpartition("/")[2]
        with Client(server.url) as client:
            said = client.predict(name, ROWS[20:50], ids=np.arange(30))
            assert said.ids == list(range(30))
            found = client.label(name, range(30), SAMPLES.y[20:50], batch=7)
            assert (found.learned, found.sequence) == (30, 50)
            assert found.status == ["learned"] * 30
            assert found.predictions.tolist() == said.predictions.tolist()
            assert client.label(name, 3, SAMPLES.y[23]).status == ["replayed"]
            assert client.label(name, 3, "another").status == ["conflict"]
            own = client.predict(name, ROWS[0], ids="auto").ids
            assert own is not None
            assert client.label(name, own, ["no"], if_match=found.state).learned == 1
            with pytest.raises(Refused, match="412"):
                client.label(name, own, ["no"], if_match=found.state)

    def test_numbers(self, server: ServerProcess, name: str):
        samples = curve(40)
        X: Any = samples.X
        with Client(server.url) as client:
            client.create(name, PAPERS | {"task": "regression"})
            client.learn(name, X[:30], samples.y[:30], head="asset")
            said = client.predict(name, X[30:], ids="auto")
            found = client.label(name, said.ids, samples.y[30:])
            assert found.predictions.tolist() == said.predictions.tolist()
            assert said.ids is not None
            mixed = client.label(name, ["none", said.ids[0]], [1.0, samples.y[30]])
            assert mixed.status == ["unknown", "replayed"]
            assert mixed.predictions.dtype == np.float64
            client.delete(name)

    def test_asynchronously(self, server: ServerProcess, path: str):
        name = path.rpartition("/")[2]

        async def go() -> list[str]:
            async with AsyncClient(server.url) as client:
                said = await client.predict(name, ROWS[20:22], ids="auto")
                first = await client.label(name, said.ids, ["no", "yes"])
                async with client.stream(name) as stream:
                    await stream.predict(ROWS[22:24], ids=["a", "b"])
                    await stream.receive()
                    await stream.label(["b", "a"], ["no", "no"])
                    second: Any = await stream.receive()
                return first.status + second.status

        assert asyncio.run(go()) == ["learned"] * 4

    def test_over_a_stream(self, server: ServerProcess, path: str):
        with Client(server.url) as client, client.stream(path.rpartition("/")[2]) as stream:
            stream.predict(ROWS[20:22], ids=["a", "b"])
            said: Any = stream.receive()
            assert said.ids == ["a", "b"]
            stream.label("a", "no")
            found: Any = stream.receive()
            assert (found.status, found.learned) == (["learned"], 1)
            assert stream.acknowledged == 1

    @pytest.mark.parametrize("ids", ["other", ["a"], []])
    def test_ids_that_do_not_fit_are_refused_before_anything_is_sent(self, ids: Any):
        with Client("http://127.0.0.1:9") as client, pytest.raises(ValueError, match="id"):
            client.predict("m", ROWS[:2], ids=ids)
