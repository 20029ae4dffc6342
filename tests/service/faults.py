"""A pretend model that keeps the promise of idempotency keys, behind servers that misbehave."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgpack
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection
from websockets.sync.server import serve as serve_websocket

from wolfstream.service.client.stream_address import SUBPROTOCOL

PACKED = "application/vnd.msgpack"
# Which of them leave the samples learned and the client without an answer.
LOST = ("late", "drop after", "garbage")
FAULTS = ("drop before", *LOST, "busy", "quota", "gateway")
STREAM_FAULTS = ("drop before", "drop after", "garbage", "late", "busy")
# What a client waits for an answer, and how long one may take that comes too late.
TIMEOUT, LATE_SECONDS = 0.2, 0.4

scripts = st.lists(st.sampled_from(("", *FAULTS)), max_size=6)
stream_scripts = st.lists(st.sampled_from(("", *STREAM_FAULTS)), max_size=6)
few = settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


class PretendModel:
    """Learns what it is given, in order, and once under each key.

    learned: the labels, which tests make different. keys: those of all requests, as they came.
    faults: what is to go wrong with the next requests; afterwards nothing does.
    """

    def __init__(self, faults: Any = (), most: int = 10**9) -> None:
        self.learned: list[Any] = []
        self.keys: list[Any] = []
        self.faults = list(faults)
        self.most = most
        self._answers: dict[Any, tuple[Any, dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def learn(self, key: Any, body: Any) -> dict[str, Any]:
        """The answer to samples, the first one where they come again."""
        with self._lock:
            self.keys.append(key)
            y = labels_of(body)
            if key in self._answers:
                sent, answer = self._answers[key]
                assert sent == y, "another body under the same key"
                return {**answer, "replayed": True}
            self.learned += y
            answer = {
                "model": "m",
                "sequence": len(self.learned),
                "learned": len(y),
                "results": {"prediction": y, "decision": [float(v) for v in y]},
                "head": {"name": "working_set", "size": len(self.learned)},
            }
            if key is not None:
                self._answers[key] = y, answer
            return answer

    def knows(self, key: Any) -> bool:
        """Whether it has learned under a key."""
        return key in self._answers

    def fault(self) -> str:
        """What is to go wrong now."""
        with self._lock:
            return self.faults.pop(0) if self.faults else ""


def labels_of(body: Any) -> list[Any]:
    """The labels of a decoded body."""
    y = body["y"]
    return np.frombuffer(y["data"], y["dtype"]).tolist() if isinstance(y, dict) else y


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: PretendModel

    def do_POST(self) -> None:
        body = msgpack.unpackb(self.rfile.read(int(self.headers["content-length"])))
        fault = self.model.fault()
        key = self.headers["idempotency-key"]
        if fault == "drop before":
            self.close_connection = True
        elif fault in ("busy", "quota", "gateway"):
            status = {"busy": 503, "quota": 429, "gateway": 502}[fault]
            after = {} if fault == "gateway" else {"retry-after": "0"}
            self.say(status, after, "application/problem+json", b'{"title": "Not now"}')
        elif len(labels_of(body)) > self.model.most:
            self.say(413, {}, "application/problem+json", b'{"title": "Too large"}')
        else:
            answer = self.model.learn(key, body)
            replayed = {"idempotency-replayed": "true"} if answer.pop("replayed", False) else {}
            if fault == "drop after":
                self.close_connection = True
                return
            if fault == "late":
                time.sleep(LATE_SECONDS)
            content = b"\x00\xff\x00" if fault == "garbage" else msgpack.packb(answer)
            self.say(200, replayed, PACKED, content)

    def say(self, status: int, headers: dict[str, str], media_type: str, body: bytes) -> None:
        with suppress(OSError):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-type", media_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def serve_forever(self, poll_interval: float = 0.01) -> None:
        # `shutdown` waits for so long.
        super().serve_forever(poll_interval)

    def handle_error(self, *_: Any) -> None:
        pass


@contextmanager
def faulty_http(model: PretendModel) -> Iterator[str]:
    """Serve a pretend model over HTTP; the URL."""
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": model}))
    with server, _running(server):
        yield f"http://127.0.0.1:{server.server_port}"


@contextmanager
def faulty_stream(model: PretendModel, window: int = 4) -> Iterator[str]:
    """Serve a pretend model over the websocket; the URL."""

    def handle(connection: ServerConnection) -> None:
        assert connection.request is not None
        producer = parse_qs(urlsplit(connection.request.path).query)["producer"][0]
        with suppress(ConnectionClosed):
            hello = {"model": "m", "window": window, "sequence": len(model.learned)}
            connection.send(msgpack.packb({"hello": hello}))
            waited_for: int | None = None
            while True:
                frame = msgpack.unpackb(connection.recv())
                fault = "busy" if waited_for not in (None, frame["id"]) else model.fault()
                if fault == "busy":
                    # As the server: what comes behind is refused until this one comes again.
                    waited_for = waited_for or frame["id"]
                    error = {"status": 503, "title": "Full", "retry_after_seconds": 0}
                    connection.send(msgpack.packb({"id": frame["id"], "error": error}))
                else:
                    waited_for = None
                    if fault == "drop before":
                        connection.close_socket()
                        return
                    _answer(connection, model, (producer, frame["id"]), frame, fault)

    server = serve_websocket(handle, "127.0.0.1", 0, subprotocols=[SUBPROTOCOL])
    with server, _running(server):
        yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"


def _answer(
    connection: ServerConnection, model: PretendModel, key: Any, frame: Any, fault: str
) -> None:
    """Take one frame and answer it, or not."""
    answer = model.learn(key, {"x": frame["x"], "y": frame["y"]})
    if fault == "drop after":
        connection.close(1001, "going")
    if fault == "late":
        time.sleep(LATE_SECONDS)
    packed = msgpack.packb({"id": frame["id"], **answer})
    connection.send(b"\xc1" if fault == "garbage" else packed)


@contextmanager
def _running(server: Any) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
