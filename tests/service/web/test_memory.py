"""The memory that requests take together."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from types import SimpleNamespace
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.service.access.test_keys import problem
from tests.service.process import ServerProcess
from tests.service.specs import PAPERS, read_papers_spec
from wolfstream.service.errors import MemoryFull
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.solver.prepare.row_form import RowForm
from wolfstream.solver.stream.rows import RowsView

SOON = 10.0
MOST = 1 << 20
BODY = json.dumps({"x": [[0.5] * 10] * 6_000, "y": [0, 1] * 3_000}).encode()


class TestBudget:
    def test_memory_of_other_processes_counts(self) -> None:
        elsewhere = 90
        budget = MemoryBudget(100, lambda: elsewhere)
        with budget.lease() as lease:
            lease.hold(10)
            with pytest.raises(MemoryFull):
                lease.hold(11)
            elsewhere = 0
            lease.hold(100)

    def test_released_memory_is_free_again(self):
        budget = MemoryBudget(100)
        for _ in range(3):
            with budget.lease() as lease:
                lease.hold(60)
                lease.hold(80)
                assert budget.held == 80
            assert budget.held == 0

    def test_leases_share_the_budget(self):
        budget = MemoryBudget(100)
        with budget.lease() as first, budget.lease() as second:
            first.hold(60)
            with pytest.raises(MemoryFull):
                second.hold(41)
            second.hold(40)
            with pytest.raises(MemoryFull):
                first.hold(61)
        assert budget.held == 0

    def test_single_lease_may_exceed_the_budget(self):
        budget = MemoryBudget(100)
        with budget.lease() as first, budget.lease() as second:
            first.hold(90)
            first.hold(1_000)
            with pytest.raises(MemoryFull):
                second.hold(1)

    def test_unbounded_lease_is_counted(self):
        budget = MemoryBudget(100)
        with budget.lease() as first, budget.lease() as second:
            first.hold(90)
            second.hold_unbounded(90)
            assert budget.held == 180
            second.shrink(5)
            assert budget.held == 95
        assert budget.held == 0

    def test_handed_over_lease_outlives_request(self):
        budget = MemoryBudget(100)
        with budget.lease() as lease:
            lease.hold(60)
            answer = lease.hand_over()
        assert budget.held == 60
        answer.release()
        assert budget.held == 0

    def test_default_budget_holds_a_megabyte(self):
        with MemoryBudget(0).lease() as lease:
            lease.hold(1 << 20)


class TestViews:
    """Those that predictions read while learning replaces them."""

    def test_replaced_view_counts_once_while_read(self):
        budget, model = MemoryBudget(1000), Model(1, "m", read_papers_spec({}))
        old = model.published = view_of(700)
        with budget.lease() as lease, lease.reading(model, old):
            with budget.lease() as other, other.reading(model, old):
                lease.hold(600)
                model.published = view_of(1)
                with pytest.raises(MemoryFull, match="take 1300 bytes"):
                    other.hold(1)
            with pytest.raises(MemoryFull, match="take 1300 bytes"):
                lease.hold(601)
        with budget.lease() as lease, budget.lease() as other:
            lease.hold(600)
            other.hold(400)

    def test_full_of_views_refuses_another(self):
        budget, model = MemoryBudget(1000), Model(1, "m", read_papers_spec({}))
        with ExitStack() as stack, budget.lease() as lease:
            for _ in range(2):
                model.published = view_of(700)
                stack.enter_context(lease.reading(model, model.published))
            stack.enter_context(lease.reading(model, model.published))
            model.published = view_of(700)
            with pytest.raises(MemoryFull, match="1400 bytes of views"):
                stack.enter_context(lease.reading(model, model.published))


def view_of(n_bytes: int) -> ModelView:
    """A view whose one head takes so many bytes."""
    head: Any = SimpleNamespace(gauges={"head_memory_bytes": n_bytes})
    return ModelView(0, "", RowsView(RowForm(None)), {"working_set": head})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with little memory for requests, and a model m."""
    data = tmp_path_factory.mktemp("memory") / "data"
    with closing(ServerProcess(data, request_bytes=MOST)) as running:
        running.start()
        spec = PAPERS | {"working_set": None}
        httpx.put(f"{running.url}/v1/models/m", json=spec).raise_for_status()
        yield running


@pytest.fixture
def taken(server: ServerProcess) -> Iterator[None]:
    """A client has sent most of a large body, and waits.

    If another request has the memory while it sends, it is the one that is refused: it tries again.
    """
    head = b"POST /v1/models/m/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    body = head % (2 * MOST) + b" " * (MOST - 100_000)
    with httpx.Client(base_url=server.url) as client:
        for _ in range(60):
            with socket.create_connection(("127.0.0.1", server.port), timeout=SOON) as slow:
                slow.sendall(body)
                for _ in range(20):
                    if client.post("/v1/models/m/predict", content=BODY).status_code == 503:
                        yield
                        return
    pytest.fail("no request was refused")


def ask(server: ServerProcess, body: bytes = BODY) -> httpx.Response:
    return httpx.post(f"{server.url}/v1/models/m/asset", content=body, timeout=60)


def test_large_body_alone_is_learned(server: ServerProcess):
    assert ask(server).json()["learned"] == 6_000


@pytest.mark.usefixtures("taken")
def test_large_body_beside_others_is_refused(server: ServerProcess):
    answer = ask(server)
    assert problem(answer) == (503, "memory-full")
    assert answer.headers["retry-after"] == "1"


@pytest.mark.usefixtures("taken")
def test_small_bodies_are_learned_meanwhile(server: ServerProcess):
    assert ask(server, b'{"x": [1,2,3,4,5,6,7,8,9,10], "y": 1}').json()["learned"] == 1


def test_memory_of_requests_is_released(server: ServerProcess):
    """Also by clients that are gone."""
    for _ in range(3):
        assert ask(server).status_code == 200
    assert ask(server, b'{"x": ' + b" " * 500_000).status_code == 400


@pytest.fixture(scope="module")
def narrow(server: ServerProcess) -> str:
    """The path of a model whose rows are one number."""
    path = f"{server.url}/v1/models/narrow"
    httpx.put(path, json=PAPERS | {"asset": None}).raise_for_status()
    httpx.post(f"{path}/samples", json={"x": [[0], [1]], "y": [0, 1]}).raise_for_status()
    return path


class TestAnswers:
    """Rows of two bytes are answered with hundreds."""

    ROWS = json.dumps({"x": [[1]] * 15_000}, separators=(",", ":")).encode()

    @pytest.mark.usefixtures("taken")
    def test_large_one_beside_others_is_refused(self, narrow: str):
        assert problem(httpx.post(f"{narrow}/predict", content=self.ROWS)) == (503, "memory-full")
        small = httpx.post(f"{narrow}/predict", content=b'{"x": [[1]]}')
        assert small.json()["prediction"] == [1]

    @pytest.mark.parametrize("accept", ["application/json", "application/vnd.msgpack"])
    def test_large_one_is_chunked(self, narrow: str, accept: str):
        for _ in range(3):  # all is given back
            answer = httpx.post(f"{narrow}/predict", content=self.ROWS, headers={"Accept": accept})
            assert answer.headers["transfer-encoding"] == "chunked"
            assert answer.headers["content-type"] == accept
            assert answer.headers["etag"].endswith(':2"')
            decode = json.loads if accept.endswith("json") else msgpack.unpackb
            assert decode(answer.content)["prediction"] == [1] * 15_000

    def test_inference_protocol_is_chunked(self, narrow: str):
        tensor = {"name": "x", "datatype": "FP64", "shape": [15_000, 1], "data": [1] * 15_000}
        path = narrow.replace("v1", "v2") + "/infer"
        answer = httpx.post(path, json={"inputs": [tensor]})
        assert answer.headers["transfer-encoding"] == "chunked"
        assert answer.json()["outputs"][0]["data"] == [1] * 15_000

    def test_binary_tensors_are_chunked(self, narrow: str):
        tensor = {"name": "x", "datatype": "FP64", "shape": [15_000, 1], "data": [1] * 15_000}
        asked = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
        for _ in range(3):  # all is given back
            answer = httpx.post(narrow.replace("v1", "v2") + "/infer", json=asked)
            told = int(answer.headers["inference-header-content-length"])
            prediction, decision = np.frombuffer(answer.content[told:], "<i8").reshape(2, -1)
            assert prediction.tolist() == [1] * 15_000
            assert len({*decision.tolist()}) == 1

    def test_large_frame_has_the_same_response(self, narrow: str):
        expected = httpx.post(f"{narrow}/predict", content=self.ROWS).json()
        for kind, decode in (("json", json.loads), ("msgpack", msgpack.unpackb)):
            encode = json.dumps if kind == "json" else msgpack.packb
            protocol = Subprotocol(f"wolfstream.v1.{kind}")
            at = f"{narrow.replace('http', 'ws', 1)}/stream"
            with connect(at, subprotocols=[protocol], max_size=None) as stream:
                stream.recv()
                stream.send(encode({"id": 1, "op": "predict", **json.loads(self.ROWS)}))
                assert decode(stream.recv(SOON)) == {"id": 1, **expected}

    def test_lost_client_releases_memory(self, server: ServerProcess, narrow: str):
        with httpx.stream("POST", f"{narrow}/predict", content=self.ROWS) as answer:
            assert answer.status_code == 200
        # The server notices that between two parts of the answer.
        deadline = time.monotonic() + SOON
        while (status := ask(server).status_code) == 503 and time.monotonic() < deadline:
            pass
        assert status == 200

    @pytest.mark.usefixtures("taken")
    def test_frame_beside_others_is_refused(self, narrow: str):
        with connect(f"{narrow.replace('http', 'ws', 1)}/stream", max_size=None) as stream:
            stream.recv()
            stream.send(json.dumps({"id": 1, "op": "predict", "x": [[1]] * 15_000}))
            answer = json.loads(stream.recv(SOON))
            assert answer["error"]["type"] == "urn:wolfstream:memory-full"


@pytest.mark.usefixtures("taken")
def test_frames_of_a_stream_count(server: ServerProcess):
    url = f"{server.url.replace('http', 'ws', 1)}/v1/models/m/stream"
    with connect(url, compression=None) as stream:
        stream.recv(SOON)
        stream.send('{"id": 1, "op": "predict", "x": [1]')
        assert "error" in json.loads(stream.recv(SOON))

        def send_too_much() -> None:
            stream.send(iter([" " * 10_000] * 200))
            stream.recv(SOON)

        with pytest.raises(ConnectionClosed) as closed:
            send_too_much()
    # What was sent meanwhile may reset the connection before the frame that closes it is read.
    assert closed.value.rcvd is None or closed.value.rcvd.code == 1013


def test_large_frame_releases_memory(server: ServerProcess):
    url = f"{server.url.replace('http', 'ws', 1)}/v1/models/m/stream"
    with connect(url) as stream:
        stream.recv(SOON)
        for number in range(2):
            frame = {"id": number, "op": "asset", **json.loads(BODY)}
            stream.send(json.dumps(frame))
            assert json.loads(stream.recv(SOON * 6))["learned"] == 6_000
