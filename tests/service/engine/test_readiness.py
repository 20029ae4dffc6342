"""Ready means that requests are answered; until then, and afterwards, it is said why not."""

import functools
import json
import logging
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from wolfstream.service.compilation.warm_up import WarmUp
from wolfstream.service.engine.writer import Writer
from wolfstream.service.model.learner import Learner
from wolfstream.service.recovery import replay
from wolfstream.service.storage.crash_marks import ReplayMarks
from wolfstream.service.web.formats import body


def wait_at(gates: Path) -> None:
    """Make the server of this process wait, in each phase, for a file to appear."""

    def gated(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*given: Any) -> Any:
            while not (gates / name).exists():
                time.sleep(0.01)
            return run(*given)

        return wait

    of_recovery: Callable[..., Any] = replay._replay_block

    def replay_block(learner: Learner, *given: Any) -> Any:
        return gated(f"replay {learner.model.name}", of_recovery)(learner, *given)

    patch = pytest.MonkeyPatch()
    patch.setattr(replay, "_replay_block", replay_block)
    patch.setattr(WarmUp, "before_ready", gated("compile", WarmUp.before_ready))
    patch.setattr(Writer, "begin", gated("learn", Writer.begin))


def second_begins_once_stopped(gates: Path) -> None:
    """Make the replay of the first model wait within a block, and the second's for the signal."""
    begin = ReplayMarks.begin
    wait_at(gates)
    of_recovery: Callable[..., Any] = replay._replay_block

    def replay_block(learner: Learner, *given: Any) -> Any:
        (gates / "first is within a block").touch()
        return of_recovery(learner, *given)

    def begin_late(self: ReplayMarks, model: int, after: int) -> int:
        while model == 2 and not self._stopped:
            time.sleep(0.01)
        return begin(self, model, after)

    patch = pytest.MonkeyPatch()
    patch.setattr(replay, "_replay_block", replay_block)
    patch.setattr(ReplayMarks, "begin", begin_late)


def soon(what: Callable[[], bool]) -> bool:
    """Whether it becomes true before long, on a busy machine that compiles as well."""
    deadline = time.monotonic() + 240
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


class Gated(ServerProcess):
    """A server over data that another one left behind, which waits in each phase."""

    def __init__(self, left: ServerProcess, gates: Path, **settings: object) -> None:
        super().__init__(left.data, **settings)
        self.gates = gates
        self.prelude = functools.partial(wait_at, gates)
        gates.mkdir()
        self.client = httpx.Client(base_url=self.url, timeout=30)

    def open(self, *gates: str) -> None:
        for gate in gates:
            (self.gates / gate).touch()

    def close(self) -> None:
        self.client.close()
        super().close()

    def detail(self) -> str:
        """What /readyz says; "ready" or why not."""
        try:
            answer = self.client.get("/readyz")
        except httpx.TransportError:
            return "nothing"
        if answer.status_code == 200:
            return str(answer.json()["status"])
        told = answer.json()
        assert (answer.status_code, told["type"]) == (503, "urn:wolfstream:not-ready")
        assert answer.headers["retry-after"] == "1"
        return str(told["detail"])


@pytest.fixture
def left(tmp_path: Path) -> ServerProcess:
    """A server that has ended, with three models in its log, without a snapshot."""
    server = ServerProcess(tmp_path / "data").start()
    try:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            for name in "abc":
                client.put(f"/v1/models/{name}").raise_for_status()
                samples = {"x": [[0], [1], [2]], "y": [0, 1, 0]}
                client.post(f"/v1/models/{name}/samples", json=samples).raise_for_status()
    finally:
        server.close()
    server.log_path.unlink()
    return server


@pytest.fixture
def gated(left: ServerProcess, tmp_path: Path) -> Iterator[Gated]:
    """A server that has these models to recover."""
    with closing(Gated(left, tmp_path / "gates")) as running:
        running.launch()
        yield running


def probes_say(gated: Gated, phase: str) -> None:
    """What probes are told while the server is in a phase."""
    assert soon(lambda: gated.detail() == f"the server is {phase}")
    client = gated.client
    assert client.get("/livez").status_code == 200
    assert client.get("/v2/health/live").json() == {"live": True}
    of_protocol = client.get("/v2/health/ready")
    assert of_protocol.status_code == 503
    assert of_protocol.json() == {"error": f"the server is {phase}"}
    metrics = client.get("/metrics")
    assert metrics.status_code == 200
    assert "\nwolfstream_ready 0.0\n" in metrics.text


def not_ready(gated: Gated, phase: str) -> None:
    """All that the interface says while the server is in a phase that takes no requests."""
    probes_say(gated, phase)
    client = gated.client
    for method, path in (("GET", "/v1/models/a"), ("GET", "/v1/models"), ("PUT", "/v1/models/d")):
        answer = client.request(method, path)
        assert (answer.status_code, answer.json()["detail"]) == (503, f"the server is {phase}")
    for path in ("samples", "asset", "predict"):
        y = {} if path == "predict" else {"y": [0]}
        answer = client.post(f"/v1/models/a/{path}", json={"x": [[0]], **y})
        assert (answer.status_code, answer.json()["detail"]) == (503, f"the server is {phase}")


def test_recovering_compiling_ready_draining(gated: Gated) -> None:
    not_ready(gated, "recovering: 0 of 3 models done")
    gated.open("replay a")
    not_ready(gated, "recovering: 1 of 3 models done")
    assert "\nwolfstream_models 1.0\n" in gated.client.get("/metrics").text
    gated.open("replay b", "replay c")
    probes_say(gated, "compiling")
    assert "wolfstream_models 3.0" in gated.client.get("/metrics").text
    assert gated.client.get("/v1/models/c").json()["sequence"] == 3
    gated.open("compile")
    assert soon(lambda: gated.detail() == "ready")
    assert gated.client.get("/v2/health/ready").json() == {"ready": True}
    assert gated.client.get("/v1/models/c").json()["sequence"] == 3
    assert "\nwolfstream_ready 1.0\n" in gated.client.get("/metrics").text

    with connect(f"{gated.url.replace('http', 'ws', 1)}/v1/models/a/stream") as stream:
        stream.recv(10)
        stream.send(json.dumps({"id": 1, "op": "learn", "x": [3], "y": 1}))
        waiting = "wolfstream_learn_duration_seconds_count 0.0"
        assert waiting in gated.client.get("/metrics").text
        gated.send_signal(signal.SIGTERM)
        # On the connection that is open; new ones find nobody, which says as much.
        not_ready(gated, "draining: it finishes what it has accepted, then it ends")
        gated.open("learn")
        assert json.loads(stream.recv(10))["sequence"] == 4
        with pytest.raises(ConnectionClosed) as closed:
            stream.recv(10)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
    assert gated.exit_code() == 0
    assert gated.detail() == "nothing"


REQUESTS = {
    "create": ("PUT", "/v1/models/d", {}),
    "learn": ("POST", "/v1/models/a/samples", {"x": [[3]], "y": [1]}),
    "predict": ("POST", "/v1/models/a/predict", {"x": [[0]]}),
    "infer": (
        "POST",
        "/v2/models/a/infer",
        {"inputs": [{"name": "x", "shape": [1, 1], "datatype": "FP64", "data": [0]}]},
    ),
    "delete": ("DELETE", "/v1/models/b", None),
}


@pytest.fixture
def while_compiling(gated: Gated) -> Iterator[dict[str, Future[httpx.Response]]]:
    """Requests that came while the server compiles, with their answers to be."""

    def send(method: str, path: str, body: Any) -> httpx.Response:
        return httpx.request(method, gated.url + path, json=body, timeout=30)

    gated.open("replay a", "replay b", "replay c", "learn")
    assert soon(lambda: gated.detail() == "the server is compiling")
    with ThreadPoolExecutor() as threads:
        sent = {name: threads.submit(send, *request) for name, request in REQUESTS.items()}
        late = {"prefer": "wait=1"}
        refused = httpx.post(
            f"{gated.url}/v1/models/a/samples", json=REQUESTS["learn"][2], headers=late, timeout=30
        )
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:wolfstream:not-ready")
        assert "is compiling what this model needs" in refused.json()["detail"]
        assert not any(answer.done() for answer in sent.values())
        yield sent


def test_what_comes_while_the_server_compiles_waits(
    gated: Gated, while_compiling: dict[str, Future[httpx.Response]]
) -> None:
    """Only a client that prefers not to wait so long is refused."""
    gated.open("compile")
    answers = {name: answer.result() for name, answer in while_compiling.items()}
    assert {name: answer.status_code for name, answer in answers.items()} == {
        **dict.fromkeys(REQUESTS, 200),
        "create": 201,
        "delete": 204,
    }
    assert answers["learn"].json()["sequence"] == 4


def test_what_waits_for_compilation_is_refused_when_the_server_stops(
    gated: Gated, while_compiling: dict[str, Future[httpx.Response]]
) -> None:
    gated.send_signal(signal.SIGTERM)
    for answer in while_compiling.values():
        assert answer.result().status_code == 503
    assert gated.exit_code() == 0


def test_the_log_tells_the_phases_but_not_each_probe(gated: Gated) -> None:
    gated.open("replay a", "replay b", "replay c", "learn")
    assert soon(lambda: gated.detail() == "the server is compiling")
    gated.open("compile")
    assert soon(lambda: gated.detail() == "ready")
    assert gated.terminate() == 0
    told = [json.loads(line)["message"] for line in gated.log().splitlines()]
    assert sorted(line for line in told if line.startswith("model recovered")) == [
        f"model recovered: model={name} sequence=3" for name in "abc"
    ]
    ready = f"ready: open {gated.url}"
    assert told.index("recovery finished: models=3") < told.index(ready)
    assert not [line for line in told if line.startswith("GET ")]


class TestSignals:
    """SIGTERM and SIGINT at any moment; no gate is opened after them."""

    @pytest.mark.parametrize("phase", ["recovering: 0 of 3 models done", "compiling"])
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_while_it_starts_it_ends(self, gated: Gated, phase: str, number: int):
        if phase == "compiling":
            gated.open("replay a", "replay b", "replay c")
        assert soon(lambda: gated.detail() == f"the server is {phase}")
        gated.send_signal(number)
        assert gated.exit_code() == 0
        # Replays that it breaks off have not ended the process.
        with closing(ReplayMarks(gated.data / "replays", read_only=True)) as marks:
            assert [marks.crashes(model) for model in range(1, 4)] == [0, 0, 0]

    def test_a_recovery_that_it_breaks_off_is_no_error(self, left: ServerProcess, tmp_path: Path):
        with closing(Gated(left, tmp_path / "gates", drain_seconds=2)) as gated:
            gated.launch()
            assert soon(lambda: gated.detail() == "the server is recovering: 0 of 3 models done")
            gated.send_signal(signal.SIGTERM)
            assert soon(lambda: "stopping:" in gated.log())
            gated.open("replay a", "replay b", "replay c")
            assert gated.exit_code() == 0
            assert "Traceback" not in gated.log()

    def test_a_block_under_way_does_not_hold_it_up(self, left: ServerProcess, tmp_path: Path):
        """The replay of one model is broken off while another one is within a block."""
        with closing(Gated(left, tmp_path / "gates")) as gated:
            gated.prelude = functools.partial(second_begins_once_stopped, gated.gates)
            gated.launch()
            assert soon(lambda: gated.detail() == "the server is recovering: 0 of 3 models done")
            assert soon(lambda: (gated.gates / "first is within a block").exists())
            gated.send_signal(signal.SIGTERM)
            assert gated.exit_code() == 0
            assert "Traceback" not in gated.log()

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_the_second_ends_it_at_once_and_nothing_is_lost(
        self, gated: Gated, tmp_path: Path, number: int
    ):
        gated.open("replay a", "replay b", "replay c", "compile")
        assert soon(lambda: gated.detail() == "ready")
        with connect(f"{gated.url.replace('http', 'ws', 1)}/v1/models/a/stream") as stream:
            stream.recv(10)
            stream.send(json.dumps({"id": 1, "op": "learn", "x": [3], "y": 1}))
            assert soon(lambda: received(gated))
            gated.send_signal(number)
            draining = "the server is draining: it finishes what it has accepted, then it ends"
            assert soon(lambda: gated.detail() == draining)
            gated.send_signal(number)
            assert gated.exit_code() == 128 + number
        told = [json.loads(line)["message"] for line in gated.log().splitlines()]
        assert any(line.startswith("stopping:") for line in told)
        again = ServerProcess(tmp_path / "data").start()
        with closing(again):
            sequence = httpx.get(f"{again.url}/v1/models/a").json()["sequence"]
        assert sequence == 3  # the fourth was never acknowledged


def decodes_slowly() -> None:
    """Make the server of this process take three seconds to decode a body with samples."""
    of_module = body.check_size

    def check_size(plain: Any, settings: Any) -> None:
        logging.getLogger("decoding").info("decoding")
        time.sleep(3)
        of_module(plain, settings)

    pytest.MonkeyPatch().setattr(body, "check_size", check_size)


@pytest.mark.parametrize("again", [False, True])
def test_decoding_delays_no_signal(tmp_path: Path, again: bool) -> None:
    server = ServerProcess(tmp_path / "data")
    server.prelude = decodes_slowly
    samples = {"x": [[0.5] * 10] * 6_000, "y": [0, 1] * 3_000}
    with closing(server.start()), ThreadPoolExecutor(1) as pool:
        url = f"{server.url}/v1/models/m"
        httpx.put(url, json=PAPERS).raise_for_status()
        sent = pool.submit(httpx.post, f"{url}/samples", json=samples, timeout=60)
        assert soon(lambda: '"decoding"' in server.log())
        server.send_signal(signal.SIGTERM)
        assert soon(lambda: "stopping" in server.log())
        assert not sent.done()
        if again:
            server.send_signal(signal.SIGTERM)
        assert server.exit_code() == (128 + signal.SIGTERM if again else 0)


def received(gated: Gated) -> bool:
    """Whether the model a has taken a sample, which nobody learns."""
    told = gated.client.get("/metrics").text
    return any(
        "samples_received" in line and 'model="a"' in line and line.endswith(" 1.0")
        for line in told.splitlines()
    )
