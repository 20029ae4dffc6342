"""Replay against a real server, and against servers that misbehave on purpose."""

import io
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from websockets.sync.server import ServerConnection
from websockets.sync.server import serve as serve_websocket

from tests.service.process import ServerProcess
from tests.service.specs import PAPERS
from wolfstream.service.cli.main import main
from wolfstream.service.cli.replay_connections import HttpConnection, WebsocketConnection
from wolfstream.service.cli.replayer import Display, Replay, Score
from wolfstream.service.client.batches import Batch
from wolfstream.service.client.errors import AnswerLost, ClientError, Refused, Unreachable
from wolfstream.service.client.stream_address import SUBPROTOCOL
from wolfstream.service.files.labelled import open_data

PENDIGITS = Path(__file__).parents[2] / "data" / "pendigits.npz"


def replay(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["replay", *arguments], prog_name="wolfstream")


def batches(count: int, size: int = 2) -> list[Batch]:
    """Batches that tell which they are: all of batch k is k."""
    return [Batch(np.full((size, 3), float(k)), [k] * size) for k in range(count)]


def described(url: str, name: str) -> dict[str, Any]:
    return httpx.get(f"{url}/v1/models/{name}").raise_for_status().json()


class TestRealServer:
    @pytest.mark.parametrize("transport", [HttpConnection, WebsocketConnection])
    def test_both_heads_learn_in_order(self, server: ServerProcess, name: str, transport: Any):
        with HttpConnection(server.url, name) as http:
            http.create(PAPERS)
        with transport(server.url, name) as connection:
            read = open_data(PENDIGITS).batches(100, limit=1050)
            scores = Replay(connection, ["working_set", "asset"]).run(
                Batch(X, y) for X, y, *_ in read
            )
        model = described(server.url, name)
        assert model["sequence"] == 2100
        for score in scores:
            assert score.samples == score.sent == 1050
            assert score.seconds > 0
            assert model["heads"][score.head]["prequential"]["samples"] == 1048
        prequential = model["heads"]["working_set"]["prequential"]  # the head that is served
        assert scores[0].judged == prequential["samples"]
        assert scores[0].accuracy == pytest.approx(prequential["accuracy"])
        assert scores[0].accuracy > 0.9
        assert scores[0].description["size"] == model["heads"]["working_set"]["size"]

    def test_command_creates_and_continues_a_model(self, server: ServerProcess, name: str):
        common = [str(PENDIGITS), "--url", server.url + "/", "--model", name]
        result = replay(*common, "--limit", "300", "--batch", "64")
        assert result.exit_code == 0, result.stderr
        assert re.match(r"adaptive: 300 samples in .* samples/s\), \d.*% of ", result.stdout)
        assert f"created model {name}\n" in result.stderr
        result = replay(*common, "--skip", "300", "--limit", "100", "--transport", "websocket")
        assert result.exit_code == 0, result.stderr
        assert "created" not in result.stderr
        assert described(server.url, name)["sequence"] == 400

    def test_labels_are_those_of_the_file(self, server: ServerProcess, name: str, tmp_path: Path):
        rows = np.random.default_rng(0).normal(size=(60, 2))
        lines = [f"{a},{b},{'up' if a > 0 else 'down'}" for a, b in rows]
        (tmp_path / "a.csv").write_text("a,b,move\n" + "\n".join(lines))
        spec = '{"kernel": {"type": "rbf", "gamma": 1.0}, "asset": null, "adaptive": null}'
        result = replay(
            *(str(tmp_path / "a.csv"), "--url", server.url, "--model", name, "--spec", spec),
            *("--label", "move"),
        )
        assert result.exit_code == 0, result.stderr
        with HttpConnection(server.url, name) as http:
            answer = http.predict(np.array([[2.0, 0.0], [-2.0, 0.0]]), "working_set")
        assert answer["prediction"] == ["up", "down"]

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (["--spec", '{"seed": 5}'], "409"),
            (["--spec", '{"seeed": 5}'], "/seeed"),
            (["--model", "no/slash"], "4"),
        ],
    )
    def test_model_refused(self, server: ServerProcess, name: str, options: list[str], says: str):
        with HttpConnection(server.url, name) as http:
            http.create(PAPERS)
        result = replay(str(PENDIGITS), "--url", server.url, "--model", name, *options)
        assert result.exit_code == 1
        assert re.match(rf"Error: .*{says}.*; nothing was sent\n$", result.stderr)

    @pytest.mark.parametrize("transport", ["http", "websocket"])
    def test_samples_refused(
        self, server: ServerProcess, name: str, tmp_path: Path, transport: str
    ):
        common = ["--url", server.url, "--model", name, "--transport", transport]
        assert replay(str(PENDIGITS), *common, "--limit", "10").exit_code == 0
        (tmp_path / "a.csv").write_text("a,b,y\n" + "1,2,0\n" * 5)
        result = replay(str(tmp_path / "a.csv"), *common, "--batch", "2")
        assert result.exit_code == 1
        assert "422" in result.stderr
        assert "in samples 1 to 2 of what was sent to adaptive" in result.stderr
        assert result.stderr.endswith("adaptive: 0 samples acknowledged; go on with --skip 0\n")
        assert described(server.url, name)["sequence"] == 10

    def test_interrupted(self, server: ServerProcess, name: str, commands: Path):
        command = [commands / "wolfstream", "replay", str(PENDIGITS), "--rate", "100"]
        process = subprocess.Popen(
            [*command, "--batch", "5", "--url", server.url, "--model", name],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            answer = httpx.get(f"{server.url}/v1/models/{name}")
            # The second batch leaves once the answer to the first has come.
            if answer.is_success and answer.json()["sequence"] > 5:
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert out == ""
        said = re.search(r"Error: interrupted; adaptive: (\d+) samples acknowledged", err)
        assert said
        assert 0 < int(said[1]) <= described(server.url, name)["sequence"] <= int(said[1]) + 5


class FakeHttp:
    """Answers each POST with the next of its answers; a None hangs up without one.

    learned: the first label of every request that it took.
    """

    def __init__(self, answers: list[Any]) -> None:
        self.posts: list[int] = []
        self.learned: list[int] = []
        self.keys: list[str] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                told = {"spec": {"task": "classification", "serve": "working_set"}}
                self.answer(200, {}, "application/vnd.msgpack", msgpack.packb(told))

            def do_POST(self) -> None:
                body = msgpack.unpackb(self.rfile.read(int(self.headers["content-length"])))
                fake.posts.append(body["y"][0])
                fake.keys.append(self.headers["idempotency-key"])
                answer = answers.pop(0) if answers else 200
                if answer is None:
                    self.close_connection = True
                elif answer == 200:
                    fake.learned.append(body["y"][0])
                    results = {"results": {"prediction": [None] * len(body["y"])}, "head": {}}
                    self.answer(200, {}, "application/vnd.msgpack", msgpack.packb(results))
                else:
                    self.answer(*answer)

            def answer(self, status: int, headers: dict, media_type: str, body: bytes) -> None:
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("content-type", media_type)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def fake_http(*answers: Any) -> Iterator[FakeHttp]:
    fake = FakeHttp(list(answers))
    thread = threading.Thread(target=fake.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield fake
    finally:
        fake.server.shutdown()
        thread.join()
        fake.server.server_close()


BUSY = (503, {"retry-after": "0"}, "application/problem+json", b'{"title": "Full"}')
PROXY_BUSY = (503, {}, "text/html", b"<html>")
TOO_LARGE = (413, {}, "application/problem+json", b'{"title": "Too large", "detail": "64 MB"}')
NOT_OURS = (200, {}, "text/html", b"<html>")


class TestHttpTrouble:
    def run(self, fake: FakeHttp, count: int = 3, retry: float = 60.0) -> Replay:
        with HttpConnection(fake.url, "m", retry=retry) as http:
            run = Replay(http, ["working_set"])
            run.run(batches(count))
        return run

    def test_busy_server_is_retried_in_order(self):
        with fake_http(200, BUSY, BUSY, 200) as fake:
            score = self.run(fake).scores[0]
        assert fake.learned == [0, 1, 2]
        assert fake.posts == [0, 1, 1, 1, 2]
        assert (score.samples, score.sent, score.judged) == (6, 6, 0)

    def test_retry_ends(self):
        with fake_http(*[BUSY] * 50) as fake, pytest.raises(Refused, match="503 Full"):
            self.run(fake, retry=0.2)
        assert not fake.learned

    def test_proxy_503_is_retried(self):
        with fake_http(PROXY_BUSY, 200, PROXY_BUSY) as fake:
            self.run(fake)
        assert fake.posts == [0, 0, 1, 1, 2]
        assert fake.learned == [0, 1, 2]

    def test_lost_response_is_retried_with_its_key(self):
        with fake_http(200, None, None, 200) as fake:
            score = self.run(fake).scores[0]
        assert fake.posts == [0, 1, 1, 1, 2]
        assert [fake.keys[0], *fake.keys[3:]] == list(dict.fromkeys(fake.keys))
        assert fake.keys[1:3] == [fake.keys[3]] * 2
        assert score.samples == 6

    def test_samples_in_doubt_are_reported(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(HttpConnection.__init__, "__defaults__", (None, 0.2))
        (tmp_path / "a.csv").write_text("a,y\n" + "".join(f"1,{k // 2}\n" for k in range(8)))
        with fake_http(200, *[None] * 50) as fake:
            result = replay(
                str(tmp_path / "a.csv"), "--url", fake.url, "--model", "m", "--batch", "2"
            )
        assert fake.posts[:2] == [0, 1]
        assert result.exit_code == 3
        assert "working_set: 2 samples acknowledged; 2 more were sent and may" in result.stderr
        assert result.stderr.count("\n") == 1

    def test_refused_samples_are_reported(self, tmp_path: Path):
        (tmp_path / "a.csv").write_text("a,y\n" + "".join(f"1,{k // 2}\n" for k in range(8)))
        with fake_http(200, TOO_LARGE) as fake:
            result = replay(
                str(tmp_path / "a.csv"), "--url", fake.url, "--model", "m", "--batch", "2",
                "--skip", "2",
            )  # fmt: skip
        assert result.exit_code == 1
        assert result.stderr == (
            "Error: 413 Too large: 64 MB; in samples 3 to 4 of what was sent to working_set; "
            "working_set: 2 samples acknowledged; go on with --skip 4\n"
        )

    def test_other_servers_are_refused(self):
        with fake_http(NOT_OURS) as fake, pytest.raises(ClientError, match="is this wolfstream"):
            self.run(fake)


Frame = dict[str, Any]


@contextmanager
def fake_stream(
    handle: Callable[[ServerConnection], None], subprotocols: Any = (SUBPROTOCOL,)
) -> Iterator[str]:
    """A websocket server that greets with a window of 2 and leaves the rest to `handle`."""

    def greet(connection: ServerConnection) -> None:
        say(connection, hello={"model": "m", "window": 2, "sequence": 0})
        handle(connection)

    with serve_websocket(greet, "127.0.0.1", 0, subprotocols=subprotocols) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()


def say(connection: ServerConnection, **message: Any) -> None:
    connection.send(msgpack.packb(message))


def take(connection: ServerConnection, frame: Frame) -> None:
    say(connection, id=frame["id"], results={"prediction": frame["y"]}, head={})


def refuse(connection: ServerConnection, frame: Frame, **problem: Any) -> None:
    say(connection, id=frame["id"], error={"status": 503, "title": "Full", **problem})


def read(connection: ServerConnection) -> Frame:
    frame: Frame = msgpack.unpackb(connection.recv(timeout=10))
    return frame


class TestStreamTrouble:
    def run(self, url: str, count: int = 4) -> Score:
        with WebsocketConnection(url, "m") as connection:
            return Replay(connection, ["asset"]).run(batches(count))[0]

    def test_window_is_not_exceeded(self):
        seen: list[list[int]] = []

        def handle(connection: ServerConnection) -> None:
            for _ in range(2):
                pair = [read(connection), read(connection)]
                with pytest.raises(TimeoutError):
                    connection.recv(timeout=0.2)
                seen.append([frame["y"][0] for frame in pair])
                for frame in pair:
                    assert frame["op"] == "asset"
                    take(connection, frame)

        with fake_stream(handle) as url:
            score = self.run(url)
        assert seen == [[0, 1], [2, 3]]
        assert (score.samples, score.judged, score.correct) == (8, 8, 8)

    def test_refused_frames_are_retried_in_order(self):
        learned: list[int] = []

        def handle(connection: ServerConnection) -> None:
            for _ in range(2):
                refuse(connection, read(connection), retry_after_seconds=0)
            while len(learned) < 4:
                frame = read(connection)
                learned.append(frame["y"][0])
                take(connection, frame)

        with fake_stream(handle) as url:
            assert self.run(url).samples == 8
        assert learned == [0, 1, 2, 3]

    def test_lost_order_is_an_error(self):
        def handle(connection: ServerConnection) -> None:
            refuse(connection, read(connection), retry_after_seconds=0)
            take(connection, read(connection))
            connection.recv(timeout=10)

        with fake_stream(handle) as url, pytest.raises(Refused) as caught:
            self.run(url)
        assert "the order is lost" in str(caught.value.__notes__)

    def test_responses_after_a_refusal_count(self):
        def handle(connection: ServerConnection) -> None:
            first, second = read(connection), read(connection)
            refuse(connection, first, status=422)
            take(connection, second)
            connection.recv(timeout=10)

        with fake_stream(handle) as url, WebsocketConnection(url, "m") as connection:
            run = Replay(connection, ["asset"])
            with pytest.raises(Refused, match="422"):
                run.run(batches(4))
        assert (run.scores[0].samples, run.scores[0].sent) == (2, 2)

    def test_closed_stream_resends_pending_frames(self):
        learned: list[int] = []
        producers: set[str] = set()

        def handle(connection: ServerConnection) -> None:
            assert connection.request is not None
            producers.add(connection.request.path)
            first = read(connection)
            learned.append(first["y"][0])
            take(connection, first)
            connection.close(1001, "going")

        with fake_stream(handle) as url:
            score = self.run(url)
        assert learned == [0, 1, 2, 3]
        assert len(producers) == 1
        assert score.samples == 8

    def test_stream_that_stays_closed_fails(self):
        def handle(connection: ServerConnection) -> None:
            if not score:
                score.append(read(connection))
                take(connection, score[0])
            read(connection)
            connection.close(1001, "going")

        score: list[Frame] = []
        with (
            fake_stream(handle) as url,
            WebsocketConnection(url, "m", retry=0.2) as connection,
        ):
            run = Replay(connection, ["asset"])
            with pytest.raises(AnswerLost, match="1001"):
                run.run(batches(9))
        assert run.scores[0].samples == 2
        assert run.scores[0].sent > 2

    def test_missing_subprotocol_is_refused(self):
        with (
            fake_stream(lambda _: None, subprotocols=None) as url,
            pytest.raises(Unreachable, match="does not speak"),
        ):
            self.run(url)


class TestScore:
    def test_only_predicted_samples_are_judged(self):
        score = Score("asset")
        assert score.accuracy is None
        answer = {"results": {"prediction": [None, 1, 1, True, "b"]}, "head": {"size": 3}}
        score.count([1, 1, 2, 1, "a"], answer)
        assert (score.samples, score.judged, score.correct) == (5, 4, 2)
        assert score.accuracy == 0.5
        assert score.description == {"size": 3}

    def test_numbers_have_a_mean_error(self):
        score = Score("asset")
        score.count([1.5, 2, 7.0], {"results": {"prediction": [None, 2.5, 6.0]}})
        assert (score.samples, score.judged, score.measured) == (3, 0, 2)
        assert score.accuracy is None
        assert score.mae == 0.75

    def test_rate_is_not_exceeded(self):
        class Instant:
            window = 1
            unanswered = 0
            times: list[float] = []

            def send_batch(self, *_: Any) -> int:
                self.times.append(time.monotonic())
                return len(self.times)

        Replay(Instant(), ["asset"], rate=50).run(batches(5))
        assert np.all(np.diff(Instant.times) > 0)
        assert Instant.times[-1] - Instant.times[0] > 4 * 2 / 50 - 0.001


class TestDisplay:
    score = Score("asset", samples=50, seconds=0.5, judged=40, correct=30)

    def test_bars_on_a_terminal(self):
        out = io.StringIO()
        console = Console(file=out, force_terminal=True, width=100)
        with Display(console, "prices", ["asset"], 200) as display:
            display.update([self.score])
        assert "50/200" in out.getvalue()
        assert "100 samples/s, 75.00% right" in out.getvalue()

    def test_a_regression_has_a_mean_error(self):
        out = io.StringIO()
        score = Score("asset", samples=50, seconds=0.5, measured=40, absolute_error=30.0)
        with Display(
            Console(file=out, force_terminal=True, width=100), "rents", ["asset"], 50
        ) as d:
            d.update([score])
        assert "100 samples/s, MAE 0.75" in out.getvalue()

    def test_lines_elsewhere(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("wolfstream.service.cli.display._LINE_SECONDS", 0.0)
        out = io.StringIO()
        with Display(Console(file=out, width=200), "prices", ["asset"], 200) as display:
            display.update([self.score])
        assert re.fullmatch(
            r"prices asset: 50 of 200 samples, +100 samples/s, 75.00% right\n", out.getvalue()
        )
