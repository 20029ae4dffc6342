"""Processor time of a request inside the application: over the shortcut, and over FastAPI's routes.

    python -m benchmarks calls

There is no socket and no HTTP parser: requests are ASGI calls in this process, and the time is the
event loop's thread's. Both ways are measured in turn, nine rounds, of which the medians count.
"""

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from starlette.types import ASGIApp, Scope

from benchmarks.harness import Options, Study
from benchmarks.results import Figures, Results, markdown, middle
from wolfstream.service.access.key_file import KeyFile
from wolfstream.service.access.key_ring import KeyRing
from wolfstream.service.compilation.warm_up import WarmUp
from wolfstream.service.engine.facade import Engine
from wolfstream.service.monitor import alerts, points
from wolfstream.service.monitor.producer import Monitor
from wolfstream.service.monitor.side_file import SideFile
from wolfstream.service.settings import Settings
from wolfstream.service.storage.data_directory import open_storage, side_path
from wolfstream.service.web.formats.memory import MemoryBudget
from wolfstream.service.web.routes.app import create_app
from wolfstream.service.web.routes.stream import Streams
from wolfstream.service.web.transport.shortcut import Shortcut
from wolfstream.solver.compile_cache import use_compile_cache

REQUESTS, AT_ONCE = 1_600, 32
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


class Application(NamedTuple):
    """A path and a body to send, and what sends them, on an event loop."""

    loop: asyncio.AbstractEventLoop
    send: Send
    path: str
    body: bytes


ROW = np.random.default_rng(0).normal(size=(300, 20))
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "predict": ("/v1/models/m/predict", {"x": ROW[0].tolist()}),
    "samples": ("/v1/models/m/samples", {"x": ROW[0].tolist(), "y": True}),
    "infer (Open Inference Protocol)": (
        "/v2/models/m/infer",
        {"inputs": [{"name": "x", "shape": [1, 20], "datatype": "FP64", "data": ROW[0].tolist()}]},
    ),
}


@contextmanager
def application(call: str, _: Options) -> Iterator[Application]:
    """An application with a model that has learned."""
    use_compile_cache()
    path, body = CALLS[call]
    with tempfile.TemporaryDirectory() as folder, closing(asyncio.new_event_loop()) as loop:
        engine, send = loop.run_until_complete(_started(Path(folder)))
        yield Application(loop, send, path, json.dumps(body).encode())
        loop.run_until_complete(engine.stop())


async def _started(folder: Path) -> tuple[Engine, Send]:
    settings = Settings(data=folder)
    engine = Engine(settings, open_storage(folder), WarmUp(None), {})
    ring = KeyRing(KeyFile(folder))
    await engine.ready
    side_file = SideFile(side_path(folder), points.SCHEMA + alerts.SCHEMA)
    monitor = Monitor(engine, points.Points(side_file), alerts.Alerts(side_file, posted=False))
    send = sender(create_app(engine, monitor, settings, Streams(), ring, MemoryBudget(0)))
    spec = {"working_set": {"max_size": 100}, "asset": None}
    assert await send("/v1/models/m", json.dumps(spec).encode(), "PUT") == 201
    samples = {"x": ROW.tolist(), "y": (ROW[:, 0] > 0).tolist()}
    assert await send("/v1/models/m/samples", json.dumps(samples).encode()) == 200
    return engine, send


def measure(
    way: Callable[[], AbstractContextManager[None]], application: Application, options: Options
) -> Figures:
    """Return microseconds of the event loop's thread for one request."""
    loop, send, path, body = application
    batches = (options.rows or REQUESTS) // AT_ONCE

    async def post() -> float:
        gc.collect()
        began = time.thread_time()
        for _ in range(batches):
            await asyncio.gather(*(send(path, body) for _ in range(AT_ONCE)))
        return time.thread_time() - began

    with way():
        return {"us": 1e6 * loop.run_until_complete(post()) / batches / AT_ONCE}


def table(kept: Results) -> str:
    """Return medians of the rounds, and their ratio."""
    rows = []
    for call in kept.data:
        short, routed = (middle(kept.of(way, call), "us") for way in WAYS)
        rows.append([call, f"{short:.0f}", f"{routed:.0f}", f"{routed / short:.2f}"])
    return markdown(["call", *(f"over {way}, us" for way in WAYS), "ratio"], rows)


WAYS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "the shortcut": nullcontext,
    "FastAPI's routes": no_shortcut,
}
STUDIES = {
    "calls": Study(
        WAYS,
        {call: partial(application, call) for call in CALLS},
        measure,
        table,
        seeds=range(9),
        rounds=True,
    )
}
