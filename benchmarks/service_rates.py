"""How many requests, frames and samples a second: the service beside a bare FastAPI endpoint."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import threadpoolctl

from benchmarks import bodies
from benchmarks.bodies import (
    DEFAULT,
    PAPERS,
    batch_requests,
    full_model,
    learn_frames,
    learn_requests,
    predict_requests,
    two_classes,
    with_set_of,
)
from benchmarks.frames import stream_all
from benchmarks.load import Load, load_of, post_all
from benchmarks.processes import uvicorn, wolfstream
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.model import read_spec

CONNECTIONS = (1, 32, 256)
ROUNDS = 3
# A request on one connection waits for its own fsync.
REQUESTS = {1: 1_000, 32: 6_000, 256: 6_000}
FULL, SMALL = 5_000, 500
STREAMS, WINDOW = 32, 8
BATCHES = (64, 256)
BATCH_CONNECTIONS, BATCH_SAMPLES = 4, 20_480
SPECS = {"the papers' spec": PAPERS, "the default spec": DEFAULT}

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
        full, small = (full_model(ours.url, f"of{n}", PAPERS, n) for n in (FULL, SMALL))
        default = full_model(ours.url, "default", DEFAULT, SMALL)
        prepared = {
            "bare FastAPI, the same body": (bare.url, learn_requests("/samples", samples)),
            "learn, durable": (ours.url, learn_requests(f"{full}/samples", samples)),
            f"learn, durable, a set of {SMALL}": (
                ours.url,
                learn_requests(f"{small}/samples", samples),
            ),
            f"learn, durable, a set of {SMALL}, the default spec": (
                ours.url,
                learn_requests(f"{default}/samples", samples),
            ),
            "predict": (ours.url, predict_requests(f"{full}/predict", samples)),
            f"predict, a set of {SMALL}": (
                ours.url,
                predict_requests(f"{small}/predict", samples),
            ),
            f"predict, a set of {SMALL}, the default spec": (
                ours.url,
                predict_requests(f"{default}/predict", samples),
            ),
        }
        print(f"### Single samples as JSON, a working set of {FULL:,}, the papers' spec\n")
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


def batches(folder: Path) -> None:
    """Batches over a few connections in turn with the same model in process, of two specs."""
    samples = two_classes(BATCH_SAMPLES, 2)
    with wolfstream(folder / "batches") as ours:
        for number, (name, spec) in enumerate(SPECS.items()):
            path = full_model(ours.url, f"batches{number}", spec, FULL)
            of_name: dict[str, tuple[int, Contender]] = {
                f"absorbed in process, blocks of {BATCHES[-1]}": (
                    BATCHES[-1],
                    partial(_in_process, full_learner(spec), samples),
                )
            }
            for size in BATCHES:
                for form, packed in (("JSON", False), ("MessagePack", True)):
                    requests = batch_requests(f"{path}/samples", samples, size, packed)
                    posting = partial(_post, ours.url, requests, BATCH_CONNECTIONS)
                    of_name[f"{size} samples as {form}"] = size, posting
            found = interleaved({at: run for at, (_, run) in of_name.items()}, BATCH_SAMPLES)
            print(
                f"### Batches over {BATCH_CONNECTIONS} connections, durable, {name}, a set of at "
                f"most {FULL:,}\n"
            )
            _print_batches({at: (of_name[at][0], load) for at, load in found.items()})


def _print_batches(found: dict[str, tuple[int, Load]]) -> None:
    print("| | samples/s | p50 ms | p99 ms | of the same model in process |")
    print("|---|---:|---:|---:|---:|")
    size, load = next(iter(found.values()))
    alone = load.rate * size
    for name, (size, load) in found.items():
        rate = load.rate * size
        times = f"{load.p50_ms:.1f} | {load.p99_ms:.1f}"
        print(f"| {name} | {rate:,.0f} | {times} | {rate / alone:.2f} |", flush=True)
    print()


def full_learner(spec: dict[str, Any]) -> Learner:
    """Return what learns for a model of a spec, whose set is at its bound, without a server."""
    learner = Learner(Model(1, "alone", read_spec(with_set_of(spec, FULL))))
    first = two_classes(4 * FULL, 99)
    _in_process(learner, first, len(first.y))
    return learner


def _in_process(learner: Learner, samples: bodies.Samples, n: int) -> Load:
    """Learn samples in blocks, and publish after each as a server does."""
    latencies, start = list[float](), time.perf_counter()
    with threadpoolctl.threadpool_limits(1):
        for i in range(0, n, BATCHES[-1]):
            began, part = time.perf_counter(), slice(i, min(i + BATCHES[-1], n))
            learner.absorb("working_set", Samples(samples.X[part], samples.y[part]))
            learner.publish()
            latencies.append(time.perf_counter() - began)
    return load_of(latencies, time.perf_counter() - start)
