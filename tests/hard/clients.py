"""Clients whose connections break again and again, and who repeat what had no answer.

A sample's numbers are its client's number and its own, so that the log can be compared
with what was acknowledged.
"""

import contextlib
import json
import time
from random import Random
from typing import Any

import httpx
import msgpack
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect
from websockets.typing import Subprotocol

PACKED = {"Content-Type": "application/vnd.msgpack"}
GONE = (httpx.TransportError, OSError, ConnectionClosed, InvalidHandshake)

Sample = tuple[int, int]


class Client:
    """A source of numbered samples for one model.

    acknowledged: the sequence of each sample in its answer. sent: how many were sent.
    repeated: answers that were given a second time.
    """

    def __init__(self, number: int, model: str, target: float | None = None) -> None:
        self.number, self.model = number, model
        self.acknowledged: dict[Sample, int] = {}
        self.sent = self.repeated = self.refused = 0
        self.calm = False
        self._random = Random(number)
        self._target = target

    def samples(self, first: int, n: int) -> dict[str, Any]:
        """Return the body of n samples from a number on."""
        numbers = range(first, first + n)
        y = [k % 2 if self._target is None else self._target * (k % 7) for k in numbers]
        return {"x": [[self.number, k] for k in numbers], "y": y}

    def note(self, first: int, n: int, sequence: int, repeated: bool) -> None:
        """Samples that were acknowledged, the last of them with a sequence."""
        self.repeated += repeated
        for k in range(n):
            self.acknowledged[self.number, first + k] = sequence - n + 1 + k

    def run(self, url: str) -> None:
        """Send until the server is gone, what is unanswered first; when calm, that alone."""
        with contextlib.suppress(GONE):
            self.serve(url)

    def serve(self, url: str) -> None:
        """One connection's life."""
        raise NotImplementedError


class HttpClient(Client):
    """One request after the other, each under its key."""

    def __init__(self, number: int, model: str, most: int, target: float | None = None) -> None:
        super().__init__(number, model, target)
        self._most = most
        self._pending: tuple[int, int, str] | None = None

    def serve(self, url: str) -> None:
        with httpx.Client(base_url=url, timeout=60) as http:
            while self._pending or not self.calm:
                if self._pending is None:
                    n = self._random.randint(1, self._most)
                    head = "asset" if self._target is not None else "samples"
                    if self._most > 1 and self._random.random() < 0.5:
                        head = "asset" if head == "samples" else "samples"
                    self._pending = self.sent, n, head
                    self.sent += n
                self._post(http, *self._pending)

    def _post(self, http: httpx.Client, first: int, n: int, head: str) -> None:
        headers = {"Idempotency-Key": f"{self.number}-{first}"}
        if first % 3 == 0:
            headers["Prefer"] = "respond-async"
        body = self.samples(first, n)
        path = f"/v1/models/{self.model}/{head}"
        if first % 2:
            answer = http.post(path, content=msgpack.packb(body), headers=headers | PACKED)
            told = msgpack.unpackb(answer.content) if answer.status_code < 300 else {}
        else:
            answer = http.post(path, json=body, headers=headers)
            told = answer.json()
        if answer.status_code == 503:
            self.refused += 1
            time.sleep(0.02)
            return
        assert answer.status_code in (200, 202), answer.text
        self.note(first, n, told["sequence"], "Idempotency-Replayed" in answer.headers)
        self._pending = None


class StreamClient(Client):
    """A websocket with many samples on their way, whose ids are their keys."""

    def __init__(self, number: int, model: str, packed: bool, window: int = 32) -> None:
        super().__init__(number, model)
        self._packed, self._window = packed, window
        self._unanswered: dict[int, dict[str, Any]] = {}

    def serve(self, url: str) -> None:
        protocol = Subprotocol(f"wolfstream.v1.{'msgpack' if self._packed else 'json'}")
        path = f"/v1/models/{self.model}/stream?producer=p{self.number}"
        with connect(url.replace("http", "ws", 1) + path, subprotocols=[protocol]) as stream:
            self._decode(stream.recv(timeout=60))
            for frame in self._unanswered.values():
                stream.send(self._encode(frame))
            while self._unanswered or not self.calm:
                while len(self._unanswered) < self._window and not self.calm:
                    stream.send(self._encode(self._next()))
                self._take(self._decode(stream.recv(timeout=60)), stream)

    def _next(self) -> dict[str, Any]:
        head = "learn" if self._random.random() < 0.7 else "asset"
        frame = {"id": self.sent, "op": head, **self.samples(self.sent, 1)}
        self._unanswered[self.sent] = frame
        self.sent += 1
        return frame

    def _take(self, answer: Any, stream: Any) -> None:
        if "error" in answer:
            assert answer["error"]["status"] == 503, answer
            self.refused += 1
            time.sleep(0.02)
            stream.send(self._encode(self._unanswered[answer["id"]]))
            return
        del self._unanswered[answer["id"]]
        self.note(answer["id"], 1, answer["sequence"], "replayed" in answer)

    def _encode(self, frame: Any) -> Any:
        return msgpack.packb(frame) if self._packed else json.dumps(frame)

    def _decode(self, message: Any) -> Any:
        return msgpack.unpackb(message) if self._packed else json.loads(message)


class Churn:
    """Creates models, teaches them a little, deletes them; and refits one that stays.

    exists: by name whether a model must exist, None where the answer was lost.
    """

    def __init__(self, refitted: str) -> None:
        self.exists: dict[str, bool | None] = {}
        self.made = self.refits = 0
        self._refitted = refitted
        self.calm = False

    def run(self, url: str) -> None:
        """Until the server is gone."""
        try:
            with httpx.Client(base_url=url, timeout=60) as http:
                while not self.calm:
                    self._one(http)
        except GONE:
            pass

    def _one(self, http: httpx.Client) -> None:
        name = f"churn{self.made}"
        self.made += 1
        self.exists[name] = None
        if http.put(f"/v1/models/{name}", json={"working_set": None}).status_code != 201:
            return
        self.exists[name] = True
        http.post(f"/v1/models/{name}/asset", json={"x": [[1, 2], [3, 4]], "y": [0, 1]})
        self.refits += http.post(f"/v1/models/{self._refitted}/refit").status_code == 202
        if self.made % 4:
            self.exists[name] = None
            if http.delete(f"/v1/models/{name}").status_code == 204:
                self.exists[name] = False
        time.sleep(0.03)
