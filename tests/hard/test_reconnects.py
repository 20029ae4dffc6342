"""Clients whose connections break at any byte, and a server that is killed under them.

One client predicts rows under ids, labels them, some twice, and learns samples, by HTTP or over a
websocket with a producer's name. Requests are sent in part, or not waited for, and sent again under
their keys until there is an answer. Nothing may be lost or learned twice: each label has the
prediction that was told, and the sequences count every sample and every labelled row once.
"""

import json
import os
import random
import socket
import struct
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import WebSocketException
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.hard.conftest import Report
from tests.service.process import ServerProcess

pytestmark = [pytest.mark.hard, pytest.mark.timeout(900)]

SEED = int(os.environ.get("HARD_SEED", "20261127"))
REQUESTS = int(os.environ.get("HARD_RECONNECTS", "150"))
SPECS: dict[str, dict[str, Any]] = {
    "default": {},
    "weighed": {"adaptive": {"class_weight": "balanced"}, "asset": None},
    "numbers": {"task": "regression", "asset": None},
}
PATHS = {"predict": "predict", "label": "labels", "learn": "samples"}
FIRST = 40


class Owner:
    """The only one who changes some models; see the module.

    told: of each model the rows' predictions. labels: those that were learned. samples: how many.
    """

    def __init__(self, server: ServerProcess, seed: int) -> None:
        self.server, self.random = server, random.Random(seed)
        self.counts, self.number = Counter[str](), 0
        self.rows: dict[Any, list[float]] = {}
        self.told: dict[str, dict[Any, Any]] = {name: {} for name in SPECS}
        self.labels: dict[str, dict[Any, Any]] = {name: {} for name in SPECS}
        self.samples = dict.fromkeys(SPECS, FIRST)

    def begin(self) -> None:
        with httpx.Client(base_url=self.server.url, timeout=60) as client:
            for name, spec in SPECS.items():
                client.put(f"/v1/models/{name}", json=spec).raise_for_status()
                body = self._samples(name, FIRST)
                client.post(f"/v1/models/{name}/samples", json=body).raise_for_status()

    def _row(self) -> list[float]:
        return [round(self.random.gauss(0, 1), 3) for _ in range(4)]

    def _label(self, name: str, row: list[float]) -> Any:
        return 2.0 * row[0] if name == "numbers" else "yes" if row[0] > 0 else "no"

    def _samples(self, name: str, n: int) -> dict[str, Any]:
        rows = [self._row() for _ in range(n)]
        return {"x": rows, "y": [self._label(name, row) for row in rows]}

    def step(self) -> None:
        """Make one request, until it is answered, and check the answer."""
        name, self.number = self.random.choice([*SPECS]), self.number + 1
        op = self.random.choice(["predict", "predict", "label", "label", "learn"])
        told, labels = self.told[name], self.labels[name]
        if op == "predict":
            ids = [f"{self.number}.{k}" for k in range(self.random.choice([1, 2, 5]))]
            self.rows |= {each: self._row() for each in ids}
            answer = self._answer(name, op, {"x": [self.rows[each] for each in ids], "ids": ids})
            told.update(zip(ids, answer["prediction"], strict=True))
        elif op == "learn":
            n = self.random.choice([1, 4])
            self._answer(name, op, self._samples(name, n))
            self.samples[name] += n
        else:
            waiting = [each for each in told if each not in labels]
            ids = self.random.sample(waiting, min(len(waiting), self.random.choice([1, 3, 8])))
            ids += self.random.sample([*labels], min(len(labels), 2))
            y = [self._label(name, self.rows[each]) for each in ids]
            if ids:
                self._check(name, ids, y, self._answer(name, op, {"ids": ids, "y": y})["results"])

    def _check(self, name: str, ids: list[Any], y: list[Any], results: Any) -> None:
        for i, each in enumerate(ids):
            status, expected = results["status"][i], ["replayed"]
            if each not in self.labels[name]:
                expected.append("learned")  # or in the same request, which had no answer
            assert status in expected, (name, each, status)
            assert results["prediction"][i] == self.told[name][each], (name, each)
            self.labels[name][each] = y[i]
            self.counts[status] += 1

    def _answer(self, name: str, op: str, body: dict[str, Any]) -> Any:
        send = self.random.choice([self._by_http, self._by_websocket])
        for attempt in range(200):
            breaks = self.random.random() < (0.6 if attempt < 2 else 0.1)
            try:
                status, answer = send(name, op, body, breaks=breaks)
            except (OSError, EOFError, WebSocketException):
                self.counts["broken"] += 1
                continue
            if status != 503:
                assert status == 200, answer
                return answer
            time.sleep(0.05)
        raise AssertionError(f"no answer to {op}: {self.server.log()}")

    def _by_http(self, name: str, op: str, body: Any, *, breaks: bool) -> tuple[int, Any]:
        url, headers = f"{self.server.url}/v1/models/{name}/{PATHS[op]}", dict[str, str]()
        if op == "learn":
            headers["Idempotency-Key"] = f"k{self.number}"
        if not breaks:
            try:
                answer = httpx.post(url, json=body, headers=headers, timeout=60)
            except httpx.TransportError as error:
                raise EOFError from error
            return answer.status_code, answer.json()
        request = httpx.Request("POST", url, json=body, headers=headers)
        lines = b"".join(b"%s: %s\r\n" % pair for pair in request.headers.raw)
        head = b"POST %s HTTP/1.1\r\n%s\r\n" % (request.url.raw_path, lines)
        with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
            self._break(connection, head + request.content)
        raise EOFError

    def _by_websocket(self, name: str, op: str, body: Any, *, breaks: bool) -> tuple[int, Any]:
        address = f"ws://127.0.0.1:{self.server.port}/v1/models/{name}/stream?producer=me"
        frame = json.dumps({"id": self.number, "op": op, **body})
        json_alone = [Subprotocol("wolfstream.v1.json")]
        with connect(address, subprotocols=json_alone, proxy=None, close_timeout=1) as stream:
            stream.recv()
            if breaks:
                data = Frame(Opcode.TEXT, frame.encode()).serialize(mask=True)
                self._break(stream.socket, data)
                raise EOFError
            stream.send(frame)
            answer = json.loads(stream.recv(timeout=60))
        return answer.get("error", {"status": 200})["status"], answer

    def _break(self, connection: socket.socket, data: bytes) -> None:
        """Send data or a part of it, and reset the connection; perhaps kill the server before."""
        whole = self.random.random() < 0.5
        connection.sendall(data if whole else data[: self.random.randrange(len(data))])
        time.sleep(self.random.choice([0.0, 0.0005, 0.002, 0.01]))
        if self.random.random() < 0.12:
            self.server.kill()
            self.server.start()
            self.counts["kills"] += 1
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    def check(self) -> None:
        for name in SPECS:
            told = httpx.get(f"{self.server.url}/v1/models/{name}").json()
            joined = len(self.labels[name])
            assert told["status"] == "ok", told["notice"]
            assert told["sequence"] == self.samples[name] + joined, name
            assert told["pending"]["joined"] == joined
            assert told["pending"]["rows"] == len(self.told[name]) - joined


def test_nothing_is_lost_or_learned_twice(tmp_path: Path, report: Report) -> None:
    with closing(ServerProcess(tmp_path / "data", snapshot_samples=150)) as server:
        server.start()
        owner = Owner(server, SEED)
        owner.begin()
        for _ in range(REQUESTS):
            owner.step()
        owner.check()
        server.kill()
        server.start()
        owner.check()
        assert "Traceback" not in server.log()
    report(**owner.counts)
