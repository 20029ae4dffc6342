"""Hundreds of clients that ask for single rows at once, which are predicted together.

Their rows have any width, missing and enormous values and texts, and some clients leave before they
are answered. Whatever comes together, each gets what it gets by itself; and while the model learns,
is rolled back and replaced, two answers to a row of one sequence are one.
"""

import asyncio
import json
import os
import random
import signal
from collections import Counter, defaultdict
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.hard.conftest import Report
from tests.service.process import ServerProcess

pytestmark = [pytest.mark.hard, pytest.mark.timeout(900)]

SEED = int(os.environ.get("HARD_SEED", "20261127"))
CLIENTS, ROUNDS, WIDTH, TAUGHT = 300, 3, 6, 500
X = np.random.default_rng(SEED).normal(size=(TAUGHT + 200, WIDTH)).round(3)
LABELS = [f"c{int(a > 0) + int(b > 0.5)}" for a, b in X[:, :2]]
SPECS: dict[str, dict[str, Any]] = {
    "classes": {"temporal": False},
    "before": {},
    "numbers": {"task": "regression", "temporal": False},
    "weighed": {"adaptive": {"class_weight": "balanced"}, "temporal": False},
}


def bodies() -> list[dict[str, Any]]:
    found = list[dict[str, Any]]()
    for i, row in enumerate(X[TAUGHT:].tolist()):
        odd: list[dict[str, Any]] = [
            {"x": [row], "probability": True},
            {"x": [row], "confidence": 0.9},
            {"x": [row[:4]]},
            {"x": [[*row, 1.0]]},
            {"x": [[None, *row[1:]]]},
            {"x": [[1e308, *row[1:]]], "probability": True},
            {"x": [[10**400, *row[1:]]]},
            {"x": [["text", *row[1:]]]},
            {"x": [{"a": 1}]},
            {"x": [[[1.0]] * WIDTH]},
            {"x": [row], "explain": 2},
            {"x": [row], "costs": {"c0": {"c1": 2.0}}},
            {"x": [row, row]},
            {"x": []},
        ]
        found.append({"x": [row]} if i % 2 else odd[i // 2 % len(odd)])
    return found


class Client:
    """A connection, which is opened when it is needed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, name: str, body: Any) -> None:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        content = json.dumps(body).encode()
        head = (
            f"POST /v1/models/{name}/predict HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        self._streams[1].write(head.encode() + content)

    async def leave(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            with suppress(ConnectionError):
                await self._streams[1].wait_closed()
            self._streams = None

    async def answer(self) -> tuple[int, Any]:
        assert self._streams is not None
        async with asyncio.timeout(60):
            head = await self._streams[0].readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].split()[0]
            told = json.loads(await self._streams[0].readexactly(int(length)))
        told.pop("request_id", None)
        return int(head.split()[1]), told


def test_each_gets_what_it_gets_alone(tmp_path: Path, report: Report) -> None:
    with closing(ServerProcess(tmp_path / "data", connections=2 * CLIENTS)) as server:
        server.start()
        with httpx.Client(base_url=server.url, timeout=60) as client:
            for name, spec in SPECS.items():
                client.put(f"/v1/models/{name}", json=spec).raise_for_status()
                y: Any = X[:TAUGHT, 0].tolist() if "task" in spec else LABELS[:TAUGHT]
                taught = {"x": X[:TAUGHT].tolist(), "y": y}
                client.post(f"/v1/models/{name}/samples", json=taught).raise_for_status()
        told = asyncio.run(_attack(server))
        assert server.exit_code() == 0
        assert "Traceback" not in server.log()
    report(**{str(status): count for status, count in told.items()})


async def _attack(server: ServerProcess) -> Counter[int]:
    drawn, asked, told = random.Random(SEED), bodies(), Counter[int]()
    clients = [Client(server.port) for _ in range(CLIENTS)]
    for name in SPECS:
        alone = list[tuple[int, Any]]()
        for body in asked:
            await clients[0].send(name, body)
            alone.append(await clients[0].answer())
        for _ in range(ROUNDS):
            chosen = [drawn.randrange(len(asked)) for _ in clients]
            for i, one in zip(chosen, clients, strict=True):
                await one.send(name, asked[i])
            gone = set(drawn.sample(range(CLIENTS), CLIENTS // 8))
            for k in gone:
                await clients[k].leave()
            for k, one in enumerate(clients):
                if k not in gone:
                    answer = await one.answer()
                    told[answer[0]] += 1
                    assert answer == alone[chosen[k]], (name, asked[chosen[k]])
    told += await _while_it_changes(server, clients, asked, drawn)
    for k, one in enumerate(clients):
        await one.send("classes", asked[k % len(asked)])
    server.send_signal(signal.SIGTERM)
    for one in clients:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            status, _ = await one.answer()
            assert status in (200, 422, 503)
        await one.leave()
    return told


async def _while_it_changes(
    server: ServerProcess, clients: list[Client], asked: list[Any], drawn: random.Random
) -> Counter[int]:
    told, said = Counter[int](), defaultdict[Any, set[str]](set)
    changing = asyncio.create_task(_change(server.url))
    while not changing.done():
        chosen = [drawn.randrange(len(asked)) for _ in clients]
        for i, one in zip(chosen, clients, strict=True):
            await one.send("classes", asked[i])
        for i, one in zip(chosen, clients, strict=True):
            status, answer = await one.answer()
            told[status] += 1
            assert status in (200, 422), answer
            if status == 200:
                moment = answer["epoch"], answer["sequence"], i
                said[moment].add(json.dumps(answer, sort_keys=True))
    await changing
    assert all(len(answers) == 1 for answers in said.values())
    return told


async def _change(url: str) -> None:
    """Let a model learn, roll it back, and exchange it with its challenger."""
    model = "/v1/models/classes"
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        follows = {**SPECS["classes"], "follows": "classes", "start": "state"}
        (await client.put("/v1/models/next", json=follows)).raise_for_status()
        for i in range(20):
            body = {"x": X[i : i + 1].tolist(), "y": LABELS[i : i + 1]}
            (await client.post(f"{model}/samples", json=body)).raise_for_status()
            if i % 10 == 4:
                sequence = (await client.post(f"{model}/snapshot")).json()["sequence"]
            if i % 10 == 7:
                back = await client.post(f"{model}/rollback", json={"sequence": sequence})
                back.raise_for_status()
            if i % 10 == 9:
                await client.post(f"{model}/promote", json={"model": "next"})
