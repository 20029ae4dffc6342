"""The contract over the websocket, against a real server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgpack
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, two_classes

JSON, MSGPACK = Subprotocol("wolfstream.v1.json"), Subprotocol("wolfstream.v1.msgpack")


class Stream:
    """A connection that speaks plain data."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.packed = connection.subprotocol == MSGPACK

    def send(self, frame: Any) -> None:
        self.connection.send(msgpack.packb(frame) if self.packed else json.dumps(frame))

    def receive(self) -> Any:
        message = self.connection.recv(timeout=20)
        return msgpack.unpackb(message) if self.packed else json.loads(message)

    def ask(self, frame: Any) -> Any:
        self.send(frame)
        return self.receive()


@contextmanager
def open_stream(
    server: ServerProcess, name: str, protocol: Subprotocol | None = JSON
) -> Iterator[Stream]:
    url = server.url.replace("http", "ws", 1)
    offered = [protocol] if protocol else None
    with connect(f"{url}/v1/models/{name}/stream", subprotocols=offered) as connection:
        yield Stream(connection)


@pytest.fixture
def stream(server: ServerProcess, client: httpx.Client, name: str) -> Iterator[Stream]:
    client.put(f"/v1/models/{name}", json=PAPERS)
    with open_stream(server, name) as opened:
        yield opened


def test_the_server_greets_with_window_and_sequence(stream: Stream, name: str) -> None:
    assert stream.connection.subprotocol == JSON
    hello = stream.receive()["hello"]
    assert hello.pop("epoch")
    assert hello == {"model": name, "window": 256, "sequence": 0}


@pytest.mark.parametrize("protocol", [JSON, MSGPACK])
def test_learn_asset_and_predict_on_one_connection(
    server: ServerProcess, client: httpx.Client, name: str, protocol: Subprotocol
) -> None:
    client.put(f"/v1/models/{name}", json={})
    with open_stream(server, name, protocol) as stream:
        stream.receive()
        samples = body(two_classes(100))
        learned = stream.ask({"id": 1, "op": "learn", **samples})
        assert (learned["id"], learned["sequence"], learned["learned"]) == (1, 100, 100)
        stepped = stream.ask({"id": "two", "op": "asset", **samples})
        assert (stepped["id"], stepped["sequence"]) == ("two", 200)
        rows = [[1, 1, 1, 1], [-1, 1, -1, 1]]
        told = stream.ask({"id": 3, "op": "predict", "x": rows, "min_sequence": 200})
        assert (told["id"], told["prediction"]) == (3, ["yes", "no"])
        told = stream.ask({"id": 4, "op": "predict", "x": rows, "head": "asset"})
        assert told["head"] == "asset"


def test_a_window_of_samples_is_learned_in_the_order_sent(stream: Stream) -> None:
    stream.receive()
    samples = two_classes(200)
    for i, (x, y) in enumerate(zip(samples.X.tolist(), samples.y, strict=True)):
        stream.send({"id": i, "op": "learn", "x": x, "y": y})
    answers = [stream.receive() for _ in range(200)]
    assert sorted(answer["id"] for answer in answers) == list(range(200))
    assert {a["id"]: a["sequence"] for a in answers} == {i: i + 1 for i in range(200)}


def test_a_client_that_overruns_the_window_is_slowed_not_dropped(stream: Stream) -> None:
    stream.receive()
    for i in range(1000):
        stream.send({"id": i, "op": "learn", "x": [i % 7, i % 3], "y": i % 2})
    assert {stream.receive()["id"] for _ in range(1000)} == set(range(1000))


@pytest.mark.parametrize("frame", ["{", "[1]", "7", '"x"', "nonsense"])
def test_a_frame_that_cannot_be_parsed_gets_an_error_without_id(stream: Stream, frame: str) -> None:
    stream.receive()
    stream.connection.send(frame)
    told = stream.receive()
    assert set(told) == {"error"}
    assert told["error"]["type"] == "urn:wolfstream:unreadable"
    assert stream.ask({"id": 1, "op": "learn", "x": [[1, 2]], "y": [1]})["learned"] == 1


@pytest.mark.parametrize(
    ("frame", "slug"),
    [
        ({"id": 5}, "invalid"),
        ({"id": 5, "op": "unlearn"}, "invalid"),
        ({"id": 5, "op": ["learn"]}, "invalid"),
        ({"id": 5, "op": "learn"}, "invalid"),
        ({"id": 5, "op": "learn", "x": [[1, 2]], "y": [1], "z": 1}, "invalid"),
        ({"id": 5, "op": "learn", "x": [[1, [2]]], "y": [1]}, "invalid-samples"),
        ({"id": 5, "op": "predict", "x": [[1, 2]]}, "untrained"),
        ({"id": 5, "op": "predict", "x": [[1, 2]], "head": "tail"}, "invalid"),
        ({"id": 5, "op": "predict", "x": [[1, 2]], "head": [1]}, "invalid"),
        ({"id": 5, "op": "predict", "x": [[1, 2]], "min_sequence": "1"}, "invalid"),
        ({"id": 5, "op": "predict"}, "invalid"),
    ],
)
def test_a_wrong_frame_gets_a_problem_with_its_id(
    stream: Stream, frame: dict[str, Any], slug: str
) -> None:
    stream.receive()
    told = stream.ask(frame)
    assert told["id"] == 5
    assert told["error"]["type"] == f"urn:wolfstream:{slug}"
    assert stream.ask({"id": 6, "op": "learn", "x": [[1, 2]], "y": [1]})["learned"] == 1


@pytest.mark.parametrize("frame_id", [None, 1.5, True, [1], "x" * 200])
def test_an_id_is_an_integer_or_a_short_text(stream: Stream, frame_id: Any) -> None:
    stream.receive()
    told = stream.ask({"id": frame_id, "op": "learn", "x": [[1, 2]], "y": [1]})
    assert set(told) == {"error"}


def test_text_on_a_binary_stream_is_an_error_not_the_end(
    server: ServerProcess, client: httpx.Client, name: str
) -> None:
    client.put(f"/v1/models/{name}", json={})
    with open_stream(server, name, MSGPACK) as stream:
        stream.receive()
        stream.connection.send('{"id": 1}')
        assert stream.receive()["error"]["type"] == "urn:wolfstream:unreadable"
        assert stream.ask({"id": 1, "op": "learn", "x": [[1, 2]], "y": [1]})["learned"] == 1


def test_without_a_subprotocol_json_is_spoken(
    server: ServerProcess, client: httpx.Client, name: str
) -> None:
    client.put(f"/v1/models/{name}", json={})
    with open_stream(server, name, None) as stream:
        assert stream.receive()["hello"]["model"] == name


def test_an_unknown_subprotocol_is_not_allowed(
    server: ServerProcess, client: httpx.Client, name: str
) -> None:
    client.put(f"/v1/models/{name}", json={})
    with (
        open_stream(server, name, Subprotocol("mqtt")) as stream,
        pytest.raises(ConnectionClosed) as closed,
    ):
        stream.receive()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008


def test_an_unknown_model_is_a_problem_at_the_handshake(server: ServerProcess) -> None:
    with pytest.raises(InvalidStatus) as refused, open_stream(server, "nobody"):
        pass
    assert refused.value.response.status_code == 404
    assert json.loads(refused.value.response.body or b"")["type"] == "urn:wolfstream:unknown-model"


def test_a_model_deleted_under_a_stream_is_reported(stream: Stream, client: httpx.Client) -> None:
    name = stream.receive()["hello"]["model"]
    client.delete(f"/v1/models/{name}")
    told = stream.ask({"id": 1, "op": "learn", "x": [[1, 2]], "y": [1]})
    assert told["error"]["type"] == "urn:wolfstream:unknown-model"


def test_a_frame_that_is_too_big_closes_with_1009(tmp_path: Path, name: str) -> None:
    server = ServerProcess(tmp_path / "data", body_bytes=4096).start()
    try:
        httpx.put(f"{server.url}/v1/models/{name}").raise_for_status()
        with open_stream(server, name) as stream:
            stream.receive()
            stream.send({"id": 1, "op": "learn", "x": [[1.0] * 5000], "y": [1]})
            with pytest.raises(ConnectionClosed) as closed:
                stream.receive()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1009
            answer = httpx.post(f"{server.url}/v1/models/{name}/samples", content=b" " * 5000)
            assert answer.status_code == 413
    finally:
        server.close()


def test_sigterm_answers_what_was_sent_and_closes_with_1001(tmp_path: Path, name: str) -> None:
    server = ServerProcess(tmp_path / "data").start()
    try:
        httpx.put(f"{server.url}/v1/models/{name}").raise_for_status()
        with open_stream(server, name) as stream:
            stream.receive()
            assert stream.ask({"id": 0, "op": "learn", "x": [[1, 2]], "y": [1]})["sequence"] == 1
            assert server.terminate() == 0
            with pytest.raises(ConnectionClosed) as closed:
                stream.receive()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1001
    finally:
        server.close()
