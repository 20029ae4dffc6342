"""How long a prediction takes while the service learns, and both kinds of requests mixed."""

import multiprocessing
import multiprocessing.synchronize
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bodies import (
    PAPERS,
    batch_requests,
    full_model,
    learn_requests,
    predict_requests,
    two_classes,
)
from benchmarks.load import Load, post_all, post_at_rate, saturate
from benchmarks.processes import wolfstream

FULL = 5_000
MIXED, MIXED_CONNECTIONS = 6_000, 32
PER_SECOND, SECONDS, CONNECTIONS = 200, 10, 4
ROUNDS = 3
_SETTLE_SECONDS = 1.0


def mixed_and_latency(folder: Path) -> None:
    """Both tables."""
    with wolfstream(folder / "latency") as ours:
        path = full_model(ours.url, "latency", PAPERS, FULL)
        _mixed(ours.url, path)
        _latency(ours.url, path)


def _mixed(url: str, path: str) -> None:
    samples = two_classes(MIXED, 3)
    learn = learn_requests(f"{path}/samples", samples)
    predict = predict_requests(f"{path}/predict", samples)
    requests = [learn[i] if i % 2 else predict[i] for i in range(MIXED)]
    runs = [post_all(url, requests, MIXED_CONNECTIONS) for _ in range(ROUNDS)]
    load = sorted(runs, key=lambda load: load.rate)[ROUNDS // 2]
    print(
        f"### Learning and predicting in turn, {MIXED_CONNECTIONS} connections\n\n"
        "| requests/s | p50 ms | p99 ms | p99.9 ms |\n|---:|---:|---:|---:|\n"
        f"| {load.rate:,.0f} | {load.p50_ms:.2f} | {load.p99_ms:.2f} | {load.p999_ms:.2f} |\n"
    )


def _latency(url: str, path: str) -> None:
    samples = two_classes(PER_SECOND * SECONDS, 4)
    predict = predict_requests(f"{path}/predict", samples)
    batches = batch_requests(f"{path}/samples", samples, 256, packed=True)
    learn = learn_requests(f"{path}/samples", samples)
    background: dict[str, tuple[list[bytes], int]] = {
        "idle": ([], 0),
        "learning, 4 connections, 256 x MessagePack": (batches, 4),
        "learning, 32 connections, single samples": (learn, 32),
    }
    found: dict[str, list[Load]] = {name: [] for name in background}
    for _ in range(ROUNDS):
        for name, (requests, connections) in background.items():
            with _learning(url, requests, connections):
                found[name].append(post_at_rate(url, predict, PER_SECOND, CONNECTIONS))
    print(
        f"### {PER_SECOND} predictions a second over {CONNECTIONS} connections\n\n"
        f"Latency from the moment at which a request was due; {ROUNDS} runs of {SECONDS} s each in "
        "turn, the run of the median p99.\n\n"
        "| the server is | p50 ms | p99 ms | p99.9 ms | p99 of idle's |\n|---|---:|---:|---:|---:|"
    )
    chosen = {n: sorted(r, key=lambda load: load.p99_ms)[ROUNDS // 2] for n, r in found.items()}
    for name, load in chosen.items():
        ratio = load.p99_ms / chosen["idle"].p99_ms
        print(
            f"| {name} | {load.p50_ms:.2f} | {load.p99_ms:.2f} | {load.p999_ms:.2f} | "
            f"{ratio:.1f} |",
            flush=True,
        )
    print()


@contextmanager
def _learning(url: str, requests: list[bytes], connections: int) -> Iterator[None]:
    """Keep the server learning all the while, from a process of its own."""
    if not requests:
        yield
        return
    spawning = multiprocessing.get_context("spawn")
    stop = spawning.Event()
    process = spawning.Process(target=_saturate, args=(url, requests, connections, stop))
    process.start()
    try:
        time.sleep(_SETTLE_SECONDS)
        yield
        if not process.is_alive():
            raise RuntimeError("the load in the background ended with an error")
    finally:
        stop.set()
        process.join()


def _saturate(
    url: str, requests: list[bytes], connections: int, stop: multiprocessing.synchronize.Event
) -> None:
    saturate(url, requests, connections, stop.is_set)
