"""Rows of named numbers against a real server, over every transport and in every format."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, few_words, named, part, plain_rows, three_classes
from wolfstream.service.cli.replay_connections import HttpConnection, WebsocketConnection
from wolfstream.service.client.batches import Batch

SPARSE = {"prepare": {"named": "sparse"}}
SPEC = {"kernel": {"gamma": 0.25}, "asset": {"dimension": 64}} | SPARSE
PACKED = "application/vnd.msgpack"
Ask = Callable[..., Any]


TRANSPORTS = ["http json", "http msgpack", "websocket json", "websocket msgpack"]


@pytest.fixture(params=TRANSPORTS)
def ask(server: ServerProcess, client: httpx.Client, name: str, request: Any) -> Any:
    """Sends a body for an operation of a fresh model of sparse rows; the answer or the problem."""
    client.put(f"/v1/models/{name}", json=SPEC).raise_for_status()
    yield from asking(server, client, name, request.param)


@pytest.fixture(params=TRANSPORTS)
def table(server: ServerProcess, client: httpx.Client, name: str, request: Any) -> Any:
    """The same of a fresh model that takes tables."""
    client.put(f"/v1/models/{name}", json={}).raise_for_status()
    yield from asking(server, client, name, request.param)


def asking(server: ServerProcess, client: httpx.Client, name: str, how: str) -> Iterator[Ask]:
    """Yields what sends a body for an operation."""
    transport, spoken = how.split()
    encode, decode = (json.dumps, json.loads) if spoken == "json" else (msgpack.packb, _unpacked)
    if transport == "http":
        paths = {"learn": "samples", "asset": "asset", "predict": "predict"}
        kind = "application/json" if spoken == "json" else PACKED

        def post(op: str, sent: Any, **query: str) -> Any:
            answer = client.post(
                f"/v1/models/{name}/{paths[op]}",
                content=encode(sent),
                headers={"content-type": kind},
                params=query,
            )
            return decode(answer.content) if answer.is_success else answer.json()

        yield post
        return
    url = f"{server.url.replace('http', 'ws', 1)}/v1/models/{name}/stream"
    with connect(url, subprotocols=[Subprotocol(f"wolfstream.v1.{spoken}")]) as connection:
        connection.recv()

        def exchange(op: str, sent: Any, **query: str) -> Any:
            connection.send(encode({"id": 1, "op": op, **sent, **query}))
            answer = decode(connection.recv(timeout=20))
            return answer.get("error", answer)

        yield exchange


def _unpacked(data: bytes) -> Any:
    return msgpack.unpackb(data)


class TestEveryTransport:
    @pytest.mark.parametrize("op", ["learn", "asset"])
    def test_learns_and_predicts(self, ask: Ask, op: str):
        samples = few_words(200)
        assert ask(op, body(samples))["learned"] == 200
        assert ask(op, {"x": {"word 1": 1, "brand new": 2.5}, "y": "a"})["sequence"] == 201
        head = "asset" if op == "asset" else "working_set"
        said = ask("predict", {"x": plain_rows(samples)}, head=head)
        assert said["head"] == head
        hits = [a == b for a, b in zip(said["prediction"], samples.y, strict=True)]
        assert np.mean(hits) > 0.5  # of three topics

    def test_refuses_with_pointers(self, ask: Ask):
        problem = ask("learn", {"x": [{"a": 1}, {"a/b": [1], "c": [[]]}], "y": [1, 2]})
        assert problem["status"] == 422
        assert [e["pointer"] for e in problem["errors"]] == ["/x/1/a~1b", "/x/1/c"]

    def test_learns_tables(self, table: Ask):
        rows = [{"warmth": 20.0 + k % 7, "room": ["hall", "attic"][k % 2]} for k in range(40)]
        y = ["dry" if row["room"] == "hall" else "humid" for row in rows]
        assert table("learn", {"x": rows[:20], "y": y[:20]})["learned"] == 20
        turned = [[row["room"], row["warmth"]] for row in rows]
        names = ["room", "warmth"]
        sent = {"x": turned[20:], "names": names, "y": y[20:]}
        assert table("learn", sent)["sequence"] == 40
        said = table("predict", {"x": rows})
        assert said["prediction"] == y
        assert table("predict", {"x": turned, "names": names})["decision"] == said["decision"]
        holes = table("predict", {"x": [{"room": "hall"}, {"warmth": None, "room": "hall"}]})
        assert holes["decision"][0] == holes["decision"][1]
        for wrong in (
            {"x": {"rom": "hall", "warmth": 20}},
            {"x": [["hall", 20]], "names": ["rom", "warmth"]},
        ):
            warning, absent = table("predict", wrong)["warnings"]
            assert (warning["slug"], warning["column"]) == ("unknown-column", "rom")
            assert "did you mean `room`" in warning["message"]
            assert absent == {
                "slug": "absent-column",
                "column": "room",
                "message": "`room` is absent, which counts as missing; 100% of the learned samples "
                "had it",
            }
        unread = {"x": [{"room": "hall", "warmth": 20}, {"room": "hall", "warmth": "cosy"}]}
        (warning,) = table("predict", unread)["warnings"]
        assert (warning["slug"], warning["column"]) == ("unread-value", "warmth")
        assert warning["message"] == (
            "`warmth` is a number; row 2 has 'cosy', which is missing there"
        )

    def test_columns_that_are_often_absent_may_be_absent(self, table: Ask):
        rows = [{"a": k % 3, "b": k % 5} for k in range(40)] + [{"a": 1}] * 5
        table("learn", {"x": rows, "y": ["u", "v", "w"] * 15})
        assert "warnings" not in table("predict", {"x": {"a": 1}})
        (warning,) = table("predict", {"x": {"b": 1}})["warnings"]
        assert warning["column"] == "a"
        assert "warnings" not in table("predict", {"x": [{"b": 1}, {"a": 2}]})
        assert "warnings" not in table("predict", {"x": {"a": None, "b": 1}})

    def test_keeps_to_the_kind_of_the_first_sample(self, ask: Ask):
        assert ask("learn", {"x": [{"a": 1}, {}], "y": [1, 2]})["learned"] == 2
        for op, sent in (("learn", {"x": [[1.0]], "y": [1]}), ("predict", {"x": [[1.0]]})):
            problem = ask(op, sent)
            assert problem["type"] == "urn:wolfstream:invalid-samples"
            assert problem["errors"] == [
                {"pointer": "/x", "detail": "must be objects of named numbers"}
            ]


def test_the_model_is_that_of_the_same_arrays(client: httpx.Client, name: str) -> None:
    """To the rounding of products that add in another order."""
    samples = three_classes(300)
    answers = []
    for model, sent in ((name, samples), (f"{name}n", named(samples))):
        client.put(f"/v1/models/{model}", json=SPEC | PAPERS)
        for start in range(0, 300, 50):
            answer = client.post(
                f"/v1/models/{model}/samples", json=body(part(sent, start, start + 50))
            ).raise_for_status()
        asked = {"x": plain_rows(sent)[:50]}
        said = client.post(f"/v1/models/{model}/predict", json=asked).json()
        answers.append((said, answer.json()))
    (said, learned), (told, named_learned) = answers
    assert told["prediction"] == said["prediction"]
    np.testing.assert_allclose(told["decision"], said["decision"], rtol=1e-4, atol=1e-4)
    assert named_learned["results"]["admitted"] == learned["results"]["admitted"]


def test_a_description_counts_the_names(client: httpx.Client, name: str) -> None:
    client.put(f"/v1/models/{name}", json=SPARSE)
    told = client.get(f"/v1/models/{name}").json()
    assert (told["rows"], told["features"]) == (None, None)
    for x, known in (({"a": 1, "zero": 0}, 1), ({"b": 1, "a": 2}, 2), ({}, 2)):
        client.post(f"/v1/models/{name}/samples", json={"x": x, "y": known})
        told = client.get(f"/v1/models/{name}").json()
        assert (told["rows"], told["features"]) == ("named", known)
    listed = client.get("/v1/models").json()["models"]
    assert (name, 3, 2) in [(one["model"], one["sequence"], one["features"]) for one in listed]


def test_a_refused_request_leaves_no_name_behind(client: httpx.Client, name: str) -> None:
    client.put(f"/v1/models/{name}", json={})
    client.post(f"/v1/models/{name}/samples", json={"x": {"a": 1}, "y": 1}).raise_for_status()
    for wrong in ([1], {"deep": [1]}):
        refused = client.post(f"/v1/models/{name}/samples", json={"x": {"b": wrong}, "y": 1})
        assert refused.status_code == 422
    client.post(f"/v1/models/{name}/predict", json={"x": {"c": 1}})
    assert client.get(f"/v1/models/{name}").json()["features"] == 1


def test_names_from_many_clients_at_once_are_all_met(client: httpx.Client, name: str) -> None:
    client.put(f"/v1/models/{name}", json={"asset": {"dimension": 8}} | SPARSE)

    def post(number: int) -> None:
        with httpx.Client(base_url=client.base_url, timeout=30) as own:
            for k in range(20):
                sent = {"x": {f"{number}": 1, f"{number}/{k}": 1, "all": 1}, "y": k % 2}
                head = ("samples", "asset")[(number + k) % 2]
                own.post(f"/v1/models/{name}/{head}", json=sent).raise_for_status()

    clients = [threading.Thread(target=post, args=(number,)) for number in range(8)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    told = client.get(f"/v1/models/{name}").json()
    assert (told["sequence"], told["features"], told["status"]) == (160, 8 + 160 + 1, "ok")


@pytest.mark.parametrize("transport", [HttpConnection, WebsocketConnection])
def test_the_projects_own_client_sends_them(
    server: ServerProcess, client: httpx.Client, name: str, transport: Any
) -> None:
    client.put(f"/v1/models/{name}", json=SPEC)
    samples = few_words(50)
    with transport(server.url, name) as connection:
        connection.send_batch(Batch(plain_rows(samples), samples.y), "working_set")
        assert connection.next_response()[1]["learned"] == 50
    with HttpConnection(server.url, name) as connection:
        said = connection.predict(plain_rows(samples)[:5], "working_set")
    assert len(said["prediction"]) == 5


def test_the_interface_describes_them(client: httpx.Client) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    kinds = schemas["Samples"]["properties"]["x"]["anyOf"]
    (row,) = [one for one in kinds if "additionalProperties" in one]
    types = {value["type"] for value in row["additionalProperties"]["anyOf"]}
    assert types == {"number", "string", "boolean", "null"}
    assert row["examples"]
