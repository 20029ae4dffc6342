"""Exactly once over real sockets: servers that are killed, connections that break."""

import random
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from tests.service.streams import body, part, two_classes
from tests.service.web.test_stream import JSON, MSGPACK, Stream
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.keys import add_key

SPEC = PAPERS | {"working_set": {"max_size": 60}, "asset": {"dimension": 8}}


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what it says of being the second, and of the size of buffers."""
    left = {name: value for name, value in answer.items() if name != "replayed"}
    return {**left, "head": {**left["head"], "bytes": 0}}


class Persistent(threading.Thread):
    """A client that sends numbered samples, each until it is answered, whatever happens."""

    def __init__(self, url: str, number: int, stop: threading.Event) -> None:
        super().__init__()
        self.url, self.number, self.stop = url, number, stop
        self.answers: list[dict[str, Any]] = []
        self.replayed = 0

    def run(self) -> None:
        self.client = httpx.Client(base_url=self.url, timeout=30)
        while not self.stop.is_set():
            self.answers.append(self.send(len(self.answers)))

    def send(self, i: int) -> dict[str, Any]:
        sample = {"x": [self.number, i % 7, i], "y": i % 2}
        call = "asset" if i % 3 == 0 else "samples"
        while True:
            try:
                answer = self.client.post(
                    f"/v1/models/m/{call}",
                    json=sample,
                    headers={"Idempotency-Key": f"{self.number}-{i}"},
                )
            except httpx.TransportError:
                time.sleep(0.05)
                continue
            if answer.status_code == 200:
                self.replayed += "idempotency-replayed" in answer.headers
                told: dict[str, Any] = answer.json()
                return told
            assert answer.status_code == 503
            time.sleep(0.05)


def test_kill_9_under_load_learns_each_request_once(tmp_path: Path) -> None:
    moments = random.Random(20260202)
    server = ServerProcess(tmp_path / "data", snapshot_samples=20)
    stop = threading.Event()
    clients = [Persistent(server.url, number, stop) for number in range(5)]
    try:
        server.start()
        httpx.put(f"{server.url}/v1/models/m", json=SPEC).raise_for_status()
        for client in clients:
            client.start()
        for _ in range(2):
            time.sleep(moments.uniform(0.3, 0.8))
            server.kill()
            server.start()
        time.sleep(0.3)
        stop.set()
        for client in clients:
            client.join()
        sent = sum(len(client.answers) for client in clients)
        sequences = [answer["sequence"] for client in clients for answer in client.answers]
        assert len(set(sequences)) == sent
        server.kill()
        snapshots = sorted(server.data.glob("snapshots/*/*.snapshot"))
        snapshots[-1].write_bytes(b"damaged")
        server.start()
        assert httpx.get(f"{server.url}/v1/models/m").json()["sequence"] == sent
        for client in clients:
            client.replayed = 0
            for i in {*range(0, len(client.answers), 5), len(client.answers) - 1}:
                assert comparable(client.send(i)) == comparable(client.answers[i])
            assert client.replayed > 0
            client.client.close()
        assert httpx.get(f"{server.url}/v1/models/m").json()["sequence"] == sent
    finally:
        stop.set()
        server.close()


# -- streams -----------------------------------------------------------------------------


def frames(n: int) -> dict[int, dict[str, Any]]:
    """By their ids, frames that teach both heads."""
    samples = two_classes(3 * n)
    return {
        i: {
            "id": i,
            "op": "asset" if i % 3 == 0 else "learn",
            **body(part(samples, 3 * i, 3 * i + 3)),
        }
        for i in range(n)
    }


def address(server: ServerProcess, name: str, query: str) -> str:
    return f"{server.url.replace('http', 'ws', 1)}/v1/models/{name}/stream{query}"


def resend_until_answered(server: ServerProcess, name: str, protocol: Any, lose: Any) -> None:
    """Read some of the answers, lose the connection, and send the rest again, under the same ids.

    lose: takes the connection.
    """
    unanswered = frames(40)
    answers: dict[int, dict[str, Any]] = {}
    for most in (7, 5, 40):
        url = address(server, name, "?producer=sensor-1")
        # Answers that nobody reads keep a connection from noticing that it was lost.
        with connect(url, subprotocols=[protocol], close_timeout=0.1) as connection:
            stream = Stream(connection)
            stream.receive()
            for frame in unanswered.values():
                stream.send(frame)
            for _ in range(min(most, len(unanswered))):
                answer = stream.receive()
                answers[answer["id"]] = answer
                del unanswered[answer["id"]]
            if unanswered:
                lose(connection)
    told = httpx.get(f"{server.url}/v1/models/{name}").json()
    assert told["sequence"] == 3 * 40
    assert sorted(answer["sequence"] for answer in answers.values()) == list(range(3, 121, 3))
    with connect(address(server, name, "?producer=sensor-1")) as connection:
        stream = Stream(connection)
        stream.receive()
        for i, frame in frames(40).items():
            again = stream.ask(frame)
            assert again["replayed"]
            assert comparable(again) == comparable(answers[i])
    assert httpx.get(f"{server.url}/v1/models/{name}").json()["sequence"] == 3 * 40


@pytest.mark.parametrize("protocol", [JSON, MSGPACK])
def test_what_a_lost_connection_left_unanswered_is_learned_once(
    server: ServerProcess, model: str, protocol: Any
) -> None:
    resend_until_answered(server, model, protocol, lambda connection: connection.socket.close())


def test_what_a_killed_server_left_unanswered_is_learned_once(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", snapshot_samples=30).start()

    def kill(_: Any) -> None:
        server.kill()
        server.start()

    try:
        httpx.put(f"{server.url}/v1/models/m", json=SPEC).raise_for_status()
        resend_until_answered(server, "m", JSON, kill)
    finally:
        server.close()


@pytest.fixture
def model(client: httpx.Client, name: str) -> str:
    client.put(f"/v1/models/{name}", json=SPEC).raise_for_status()
    return name


FRAME = frames(2)[1]
OTHER = frames(3)[2] | {"id": 1}


def test_ids_are_a_producers_own_and_are_no_header_keys(
    server: ServerProcess, client: httpx.Client, model: str
) -> None:
    for n, query in enumerate(("?producer=a", "?producer=b", "?producer=a%201", ""), 1):
        if "%20" in query:
            with pytest.raises(InvalidStatus) as refused:
                connect(address(server, model, query))
            assert refused.value.response.status_code == 422
            continue
        with connect(address(server, model, query)) as connection:
            stream = Stream(connection)
            stream.receive()
            assert "replayed" not in stream.ask(FRAME)
            assert ("replayed" in stream.ask(FRAME)) == bool(query), n
    headers = {"Idempotency-Key": "a"}
    told = client.post(
        f"/v1/models/{model}/samples", json={k: FRAME[k] for k in "xy"}, headers=headers
    )
    assert "idempotency-replayed" not in told.headers
    assert told.json()["sequence"] == 15


def test_a_number_and_its_digits_are_two_ids(server: ServerProcess, model: str) -> None:
    with connect(address(server, model, "?producer=a")) as connection:
        stream = Stream(connection)
        stream.receive()
        for frame_id in (1, "1", "\N{SNOWMAN} 1", "", 2**80, -1):
            learned = stream.ask(FRAME | {"id": frame_id})
            assert (learned["learned"], "replayed" in learned) == (3, False)
            assert stream.ask(FRAME | {"id": frame_id})["replayed"]


def test_another_frame_under_the_id_is_refused_and_the_stream_lives(
    server: ServerProcess, model: str
) -> None:
    with connect(address(server, model, "?producer=a")) as connection:
        stream = Stream(connection)
        stream.receive()
        first = stream.ask(FRAME)
        for other in (OTHER, FRAME | {"op": "asset"}):
            refused = stream.ask(other)["error"]
            assert (refused["status"], refused["type"]) == (
                422,
                "urn:wolfstream:idempotency-key-reused",
            )
        assert comparable(stream.ask(FRAME)) == comparable(first)
        told = stream.ask({"id": 1, "op": "predict", "x": [[1, 1, 1, 1]]})
        assert told["sequence"] == 3


@pytest.mark.parametrize("producer", ["", "x" * 256, "a%20b", "%C3%BC", "%00"])
def test_what_is_no_producer_is_refused(server: ServerProcess, model: str, producer: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        connect(address(server, model, f"?producer={producer}"))
    assert refused.value.response.status_code == 422
    assert b"producer" in refused.value.response.body


def test_the_same_producer_with_another_api_key_is_another(tmp_path: Path) -> None:
    data = tmp_path / "data"
    keys = [add_key(KeyFile(data), name, ("learn", "admin")) for name in ("a", "b")]
    server = ServerProcess(data).start()
    try:
        headers = [{"Authorization": f"Bearer {key}"} for key in keys]
        httpx.put(f"{server.url}/v1/models/m", json=SPEC, headers=headers[0]).raise_for_status()
        for one in headers:
            url = address(server, "m", "?producer=p")
            with connect(url, additional_headers=one) as connection:
                stream = Stream(connection)
                stream.receive()
                assert "replayed" not in stream.ask(FRAME)
                assert stream.ask(FRAME)["replayed"]
    finally:
        server.close()
