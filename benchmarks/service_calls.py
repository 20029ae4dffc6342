"""Processor time of a request inside the application: over the shortcut, and over FastAPI's routes.

    python -m benchmarks.service_calls

There is no socket and no HTTP parser: requests are ASGI calls in this process, and the time is the
event loop's thread's. Both ways are measured in turn, several rounds; the medians are printed.
"""

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np
from starlette.types import ASGIApp, Scope

from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.key_ring import KeyRing
from wolfstream.service.engine.facade import Engine
from wolfstream.service.engine.warm_up import WarmUp
from wolfstream.service.monitor import alerts, points
from wolfstream.service.monitor.producer import Monitor
from wolfstream.service.monitor.side_file import SideFile
from wolfstream.service.native.compile_cache import use_compile_cache
from wolfstream.service.settings import Settings
from wolfstream.service.storage.data_directory import open_storage, side_path
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.layers.shortcut import Shortcut
from wolfstream.service.web.routes.app import create_app
from wolfstream.service.web.routes.stream import Streams

ROUNDS, REQUESTS, AT_ONCE = 9, 1_600, 32
Send = Callable[..., Awaitable[int]]


def sender(app: ASGIApp) -> Send:
    """Requests with a JSON body; each gives its status."""

    async def send_to(path: str, body: bytes, method: str = "POST") -> int:
        statuses: list[int] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        await app(_scope(path, body, method), receive, send)
        return statuses[0]

    return send_to


def _scope(path: str, body: bytes, method: str) -> Scope:
    length = str(len(body)).encode()
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"content-length", length)],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {"connections": set()},
    }


@contextmanager
def no_shortcut() -> Iterator[None]:
    """Leave every request to FastAPI's router."""

    async def pass_on(self: Any, *call: Any) -> None:
        await self._app(*call)

    with mock.patch.object(Shortcut, "__call__", pass_on):
        yield


async def seconds(send: Send, path: str, body: bytes) -> float:
    """Processor time of the event loop's thread for one request."""
    gc.collect()
    began = time.thread_time()
    for _ in range(REQUESTS // AT_ONCE):
        await asyncio.gather(*(send(path, body) for _ in range(AT_ONCE)))
    return (time.thread_time() - began) / REQUESTS


async def measure(folder: Path) -> None:
    """Print a table of microseconds for each call."""
    settings = Settings(data=folder)
    engine = Engine(settings, open_storage(folder), WarmUp(None), {})
    ring = KeyRing(KeyFile(folder))
    await engine.ready
    side_file = SideFile(side_path(folder), points.SCHEMA + alerts.SCHEMA)
    monitor = Monitor(engine, points.Points(side_file), alerts.Alerts(side_file, posted=False))
    send = sender(create_app(engine, monitor, settings, Streams(), ring, MemoryBudget(0)))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    spec = {"working_set": {"max_size": 100}, "asset": None}
    assert await send("/v1/models/m", json.dumps(spec).encode(), "PUT") == 201
    samples = {"x": X.tolist(), "y": (X[:, 0] > 0).tolist()}
    assert await send("/v1/models/m/samples", json.dumps(samples).encode()) == 200
    row = {"x": X[0].tolist()}
    tensor = {"name": "x", "shape": [1, 20], "datatype": "FP64", "data": row["x"]}
    print("| call | shortcut, us | FastAPI's routes, us | ratio |\n|---|---:|---:|---:|")
    for path, body in (
        ("/v1/models/m/predict", row),
        ("/v1/models/m/samples", row | {"y": True}),
        ("/v2/models/m/infer", {"inputs": [tensor]}),
    ):
        found: tuple[list[float], list[float]] = ([], [])
        encoded = json.dumps(body).encode()
        for _ in range(ROUNDS):
            found[0].append(await seconds(send, path, encoded))
            with no_shortcut():
                found[1].append(await seconds(send, path, encoded))
        short, routed = (1e6 * median(times) for times in found)
        print(f"| `{path}` | {short:.0f} | {routed:.0f} | {routed / short:.2f} |", flush=True)
    await engine.stop()


if __name__ == "__main__":
    use_compile_cache()
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(measure(Path(temporary)))
