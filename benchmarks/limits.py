"""How near the service is to what it cannot do without, and what it does beyond its limits.

python -m benchmarks one_client     durable learning over one connection, beside an fsync alone
python -m benchmarks overload       predictions while ten times what it can learn is sent
"""

import asyncio
import multiprocessing
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np

from benchmarks.bodies import (
    DEFAULT,
    PAPERS,
    batch_requests,
    learn_requests,
    predict_requests,
    two_classes,
)
from benchmarks.harness import Options, Study
from benchmarks.load import Connection, post_all, post_at_rate, running
from benchmarks.processes import Server, wolfstream
from benchmarks.results import Figures, listed, mean

SPECS = {"the papers' spec": PAPERS, "the default spec": DEFAULT}
PATH, LEARNED, SINGLES = "/v1/models/m", 2_000, 1_000
# What a commit of one sample writes to SQLite's log: a page and what describes it.
COMMIT_BYTES = 4_096 + 24

TIMES, BATCH, OVERLOAD_SECONDS, IDLE_SECONDS = 10, 256, 60, 20
CAPACITY_REQUESTS, FLOOD_CONNECTIONS = 40, 32
# Fewer than the samples that these connections send at once, so that some are refused.
QUEUE_SAMPLES = 4_096
PER_SECOND, CONNECTIONS = 50, 4


class Place(NamedTuple):
    """A server with a model that has learned, and its data directory."""

    server: Server
    data: Path


@contextmanager
def learned(spec: dict[str, Any], _: Options) -> Iterator[Place]:
    """A server whose model has learned the first samples."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        environment = os.environ | {"WOLFSTREAM_QUEUE_SAMPLES": str(QUEUE_SAMPLES)}
        with wolfstream(data, environment=environment) as server:
            httpx.put(server.url + PATH, json=spec).raise_for_status()
            warm = batch_requests(f"{PATH}/samples", two_classes(LEARNED, 99), 50, True)
            post_all(server.url, warm, 1)
            yield Place(server, data)


def one_client(_: str, place: Place, options: Options) -> Figures:
    """Learn samples one by one; after each, write a file on the same disk and fsync it."""
    n = min(SINGLES, options.rows or SINGLES)
    requests = learn_requests(f"{PATH}/samples", two_classes(n, options.seed))
    file = os.open(place.data.parent / "fsync", os.O_CREAT | os.O_WRONLY)

    async def work() -> tuple[list[float], list[float]]:
        learning, syncing = list[float](), list[float]()
        connection = await Connection.to(place.server.url)
        for request in requests:
            began = time.perf_counter()
            await connection.exchange(request)
            learning.append(time.perf_counter() - began)
            began = time.perf_counter()
            os.write(file, bytes(COMMIT_BYTES))
            os.fsync(file)
            syncing.append(time.perf_counter() - began)
        connection.close()
        return learning, syncing

    try:
        learn_ms, sync_ms = (1e3 * float(np.median(of)) for of in running(work()))
    finally:
        os.close(file)
    return {"learn_ms": learn_ms, "sync_ms": sync_ms, "ratio": learn_ms / sync_ms}


class Flood(NamedTuple):
    """What became of the samples of a flood."""

    acknowledged: int
    refused: int


def flood(url: str, requests: list[bytes], per_second: float, seconds: float) -> Flood:
    """Send batches at up to this rate, until these seconds have passed; heed no Retry-After."""
    return running(_flood(url, requests, per_second, seconds))


async def _flood(url: str, requests: list[bytes], per_second: float, seconds: float) -> Flood:
    answers, start = Counter[int](), time.perf_counter()

    async def work(first: int) -> None:
        connection = await Connection.to(url)
        for i in count(first, FLOOD_CONNECTIONS):
            await asyncio.sleep(max(0.0, start + i / per_second - time.perf_counter()))
            if time.perf_counter() > start + seconds:
                break
            status, body = await connection.answer(requests[i % len(requests)])
            answers[status] += BATCH
            if status not in (200, 503):
                raise RuntimeError(f"{status} {body.decode(errors='replace')}")
        connection.close()

    async with asyncio.TaskGroup() as group:
        for first in range(FLOOD_CONNECTIONS):
            group.create_task(work(first))
    return Flood(answers[200], answers[503])


def overload(_: str, place: Place, options: Options) -> Figures:
    """Predict at a pace, idle and under a flood; kill the server, and count what it has kept."""
    url = place.server.url
    samples = two_classes(CAPACITY_REQUESTS * BATCH, options.seed)
    requests = batch_requests(f"{PATH}/samples", samples, BATCH, True)
    rows = predict_requests(f"{PATH}/predict", samples)
    capacity = post_all(url, requests, CONNECTIONS).rate
    seconds = options.rows or OVERLOAD_SECONDS
    idle = post_at_rate(url, rows[: PER_SECOND * IDLE_SECONDS], PER_SECOND, CONNECTIONS)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as beside:
        flooding = beside.submit(flood, url, requests, TIMES * capacity, seconds)
        time.sleep(1.0)
        busy = post_at_rate(url, rows[: PER_SECOND * (seconds - 1)], PER_SECOND, CONNECTIONS)
        sent = flooding.result()
    os.kill(place.server.pid, signal.SIGKILL)
    with wolfstream(place.data) as again:
        kept = httpx.get(again.url + PATH).json()["sequence"]
    acknowledged = LEARNED + len(samples.y) + sent.acknowledged
    return {
        "times": sum(sent) / seconds / (capacity * BATCH),
        "idle_p99_ms": idle.p99_ms,
        "p99_ms": busy.p99_ms,
        "ratio": busy.p99_ms / idle.p99_ms,
        "acknowledged": sent.acknowledged,
        "refused": sent.refused,
        "lost": max(acknowledged - kept, 0),
    }


STUDIES = {
    "one_client": Study(
        {"one client": ""},
        {name: partial(learned, spec) for name, spec in SPECS.items()},
        one_client,
        partial(
            listed,
            columns={
                "learn, p50 ms": mean("learn_ms"),
                "fsync alone, p50 ms": mean("sync_ms"),
                "ratio": mean("ratio"),
            },
        ),
        seeds=range(3),
        rounds=True,
    ),
    "overload": Study(
        {"60 s": ""},
        {"the default spec": partial(learned, DEFAULT)},
        overload,
        partial(
            listed,
            columns={
                "of what it can learn": mean("times", ".1f"),
                "predictions' p99, idle, ms": mean("idle_p99_ms", ".1f"),
                "p99 under the flood, ms": mean("p99_ms", ".1f"),
                "ratio": mean("ratio", ".1f"),
                "samples acknowledged": mean("acknowledged", ",.0f"),
                "refused with 503": mean("refused", ",.0f"),
                "acknowledged, but lost": mean("lost", ",.0f"),
            },
        ),
    ),
}
