"""Requests over HTTP and frames over a websocket, in JSON and MessagePack."""

import json
import random
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgpack
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

GONE = (OSError, urllib.error.URLError, EOFError, ConnectionClosed, InvalidHandshake)
PACKED = "application/vnd.msgpack"
SECONDS = 60


class Refused(Exception):
    """An answer that is a problem. status: that of HTTP, also in a frame."""

    def __init__(self, status: int, problem: Any) -> None:
        super().__init__(status, problem)
        self.status = status
        self.outcome = problem.get("outcome")

    def expect(self, *statuses: int) -> None:
        """Raise it, unless its status is one of these."""
        if self.status not in statuses:
            raise self


def call(url: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """Return the decoded answer. Raises Refused, and one of GONE where there is none."""
    packed = body is not None and random.random() < 0.3
    data = None
    if body is not None:
        data = msgpack.packb(body) if packed else json.dumps(body).encode()
    kind = {"content-type": PACKED if packed else "application/json"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url + path, data, kind | named, method=method)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            content, media_type = answer.read(), answer.headers["content-type"]
    except urllib.error.HTTPError as error:
        raise Refused(error.code, json.loads(error.read())) from None
    if not content:
        return {}
    return msgpack.unpackb(content) if media_type == PACKED else json.loads(content)


class Frames:
    """An open stream of a model, which `open_stream` opens and closes."""

    def __init__(self, connection: ClientConnection, packed: bool) -> None:
        self._open, self._packed = connection, packed
        self.hello = self.receive()["hello"]

    def send(self, frame: Any) -> None:
        """Raises one of GONE."""
        self._open.send(msgpack.packb(frame) if self._packed else json.dumps(frame))

    def receive(self) -> Any:
        """Return the next answer. Raises one of GONE."""
        message = self._open.recv(timeout=SECONDS)
        return msgpack.unpackb(message) if isinstance(message, bytes) else json.loads(message)


@contextmanager
def open_stream(url: str, path: str, packed: bool, producer: str | None = None) -> Iterator[Frames]:
    """A stream of a model. Raises one of GONE."""
    protocol = Subprotocol(f"wolfstream.v1.{'msgpack' if packed else 'json'}")
    query = f"?producer={producer}" if producer else ""
    at = f"{url.replace('http', 'ws', 1)}{path}/stream{query}"
    with connect(at, subprotocols=[protocol], proxy=None, open_timeout=SECONDS) as connection:
        yield Frames(connection, packed)
