"""How many requests, frames and samples a second: the service beside a bare FastAPI endpoint."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import threadpoolctl

from benchmarks.bodies import (
    batch_requests,
    full_model,
    learn_frames,
    learn_requests,
    predict_requests,
    two_classes,
)
from benchmarks.frames import stream_all
from benchmarks.load import Load, post_all
from benchmarks.processes import uvicorn, wolfstream
from service.heads.kinds import build
from service.spec.model import ModelSpec

CONNECTIONS = (1, 32, 256)
ROUNDS = 3
# A request on one connection waits for its own fsync.
REQUESTS = {1: 1_000, 32: 6_000, 256: 6_000}
FULL, SMALL = 5_000, 500
STREAMS, WINDOW = 32, 8
BATCHES = (64, 256)
BATCH_CONNECTIONS, BATCH_SAMPLES = 4, 20_480
_BATCH = 256

Contender = Callable[[int], Load]


def middle(loads: list[Load]) -> Load:
    """Return the run of the median rate."""
    at = median(load.rate for load in loads)
    return min(loads, key=lambda load: abs(load.rate - at))


def print_rates(title: str, of: str, found: dict[str, Load]) -> None:
    """A table of loads and their ratios to the first of them."""
    print(f"| {title} | {of} | p50 ms | p99 ms | p99.9 ms | ratio |")
    print("|---|---:|---:|---:|---:|---:|")
    first = next(iter(found.values())).rate
    for name, load in found.items():
        print(
            f"| {name} | {load.rate:,.0f} | {load.p50_ms:.2f} | {load.p99_ms:.2f} | "
            f"{load.p999_ms:.2f} | {load.rate / first:.2f} |",
            flush=True,
        )
    print()


def interleaved(contenders: dict[str, Contender], requests: int) -> dict[str, Load]:
    """Return each contender once a round, so that all see the machine as it is; the median run."""
    found: dict[str, list[Load]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            found[name].append(run(requests))
    return {name: middle(loads) for name, loads in found.items()}


def singles_and_streams(folder: Path) -> None:
    """Single samples over HTTP beside the bare endpoint; then over websockets beside HTTP."""
    samples = two_classes(max(REQUESTS.values()), 0)
    with (
        uvicorn("benchmarks.bare:app", folder / "bare.log") as bare,
        wolfstream(folder / "singles") as ours,
    ):
        full, small = (full_model(ours.url, f"of{n}", n) for n in (FULL, SMALL))
        prepared = {
            "bare FastAPI, the same body": (bare.url, learn_requests("/samples", samples)),
            "learn, durable": (ours.url, learn_requests(f"{full}/samples", samples)),
            f"learn, durable, a set of {SMALL}": (
                ours.url,
                learn_requests(f"{small}/samples", samples),
            ),
            "predict": (ours.url, predict_requests(f"{full}/predict", samples)),
            f"predict, a set of {SMALL}": (
                ours.url,
                predict_requests(f"{small}/predict", samples),
            ),
        }
        print(f"### Single samples as JSON, a working set of {FULL:,}\n")
        for connections in CONNECTIONS:
            contenders: dict[str, Contender] = {
                name: partial(_post, url, made, connections)
                for name, (url, made) in prepared.items()
            }
            found = interleaved(contenders, REQUESTS[connections])
            print_rates(f"connections: {connections}", "requests/s", found)
        print(f"### Single samples over {STREAMS} websockets, {WINDOW} frames unanswered each\n")
        _streams(ours.url, full, prepared["learn, durable"][1])


def _streams(url: str, path: str, requests: list[bytes]) -> None:
    samples = two_classes(len(requests), 1)
    contenders: dict[str, Contender] = {
        f"learn over HTTP, {STREAMS} connections": partial(_post, url, requests, STREAMS)
    }
    for name, packed in (("json", False), ("msgpack", True)):
        frames = learn_frames(samples, packed)
        contenders[f"learn over websocket, {name}"] = partial(
            _stream, url, f"{path}/stream", f"wolfstream.v1.{name}", frames
        )
    print_rates("durable", "samples/s", interleaved(contenders, len(requests)))


def _post(url: str, requests: list[bytes], connections: int, n: int) -> Load:
    return post_all(url, requests[:n], connections)


def _stream(url: str, path: str, subprotocol: str, frames: list[bytes], n: int) -> Load:
    return stream_all(url, path, subprotocol, frames[:n], STREAMS, WINDOW)


def batches(folder: Path, in_process: float) -> None:
    """Batches over a few connections, beside the learner alone."""
    samples = two_classes(BATCH_SAMPLES, 2)
    print(
        f"### Batches over {BATCH_CONNECTIONS} connections, durable, a set of at most {FULL:,}\n\n"
        "| | samples/s | p50 ms | p99 ms | of the learner alone |\n|---|---:|---:|---:|---:|\n"
        f"| absorbed in process, blocks of {BATCHES[-1]} | {in_process:,.0f} | | | 1.00 |"
    )
    with wolfstream(folder / "batches") as ours:
        path = full_model(ours.url, "batches", FULL)
        for size in BATCHES:
            for name, packed in (("JSON", False), ("MessagePack", True)):
                requests = batch_requests(f"{path}/samples", samples, size, packed)
                runs = [post_all(ours.url, requests, BATCH_CONNECTIONS) for _ in range(ROUNDS)]
                load = middle(runs)
                rate = load.rate * size
                print(
                    f"| {size} samples as {name} | {rate:,.0f} | {load.p50_ms:.1f} | "
                    f"{load.p99_ms:.1f} | {rate / in_process:.2f} |",
                    flush=True,
                )
    print()


def in_process() -> float:
    """Return samples per second of a full set without a server; best of three."""
    head = build("working_set", ModelSpec.model_validate({"asset": None}))
    first, samples = two_classes(4 * FULL, 99), two_classes(BATCH_SAMPLES, 2)
    rates = []
    with threadpoolctl.threadpool_limits(1):
        for i in range(0, len(first.y), _BATCH):
            head.absorb(first.X[i : i + _BATCH], first.y[i : i + _BATCH])
        for _ in range(3):
            start = time.perf_counter()
            for i in range(0, BATCH_SAMPLES, _BATCH):
                head.absorb(samples.X[i : i + _BATCH], samples.y[i : i + _BATCH])
            rates.append(BATCH_SAMPLES / (time.perf_counter() - start))
    return max(rates)
