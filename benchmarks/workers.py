"""A server with workers beside one process that does everything, and beside a bare endpoint.

python -m benchmarks.workers [--requests N]

It prints single durable samples over 32 connections, predictions by number of workers, and the
latency of predictions while the server learns beside that while nothing else happens. Ratios are
within one run: contenders take turns.
"""

import argparse
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from benchmarks.bodies import learn_requests, predict_requests, two_classes
from benchmarks.load import Load, post_all, post_at_rate, saturate
from benchmarks.machine import machine_line
from benchmarks.processes import Server, uvicorn, wolfstream
from benchmarks.service_rates import interleaved, print_rates

CONNECTIONS = 32
WORKERS = (0, 1, 2)
SET = 500
SPECS: dict[str, dict[str, Any]] = {
    "papers": {"prepare": None, "adaptive": None, "asset": None},
    "default": {},
}
# Predictions a second, few enough that one process answers them while it learns.
PACE, PACED = 200.0, 2_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4_000)
    asked = parser.parse_args()
    print(f"{machine_line()}\n", flush=True)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder)
        bare = stack.enter_context(uvicorn("benchmarks.bare:app", path / "bare.log"))
        servers = {n: stack.enter_context(_server(path / f"of{n}", n)) for n in WORKERS}
        for server in servers.values():
            for name, spec in SPECS.items():
                _teach(server, name, spec)
        _learning(bare, servers, asked.requests)
        _predicting(bare, servers, asked.requests)
        _predicting_while_learning(servers)


@contextmanager
def _server(data: Path, workers: int) -> Iterator[Server]:
    data.parent.joinpath(f"{data.name}.d").mkdir()
    environment = os.environ | {"WOLFSTREAM_WORKERS": str(workers)}
    place = data.parent / f"{data.name}.d" / "data"
    with wolfstream(place, environment=environment) as server:
        yield server


def _teach(server: Server, name: str, spec: dict[str, Any]) -> None:
    """Make a model with a set of so many samples."""
    own = {**spec, "working_set": {"max_size": SET}}
    httpx.put(f"{server.url}/v1/models/{name}", json=own, timeout=60).raise_for_status()
    samples = learn_requests(_path(name, "samples"), two_classes(4 * SET, 9))
    post_all(server.url, samples, 4)


def _path(name: str, call: str) -> str:
    return f"/v1/models/{name}/{call}"


def _named(workers: int) -> str:
    return f"{workers} workers" if workers else "one process"


def _learning(bare: Server, servers: dict[int, Server], requests: int) -> None:
    samples = two_classes(requests, 0)
    print(f"### Single durable samples as JSON, {CONNECTIONS} connections, a set of {SET}\n")
    for name in SPECS:
        contenders = {"bare FastAPI, the same body": _posting(bare, "/samples", samples)}
        for n, server in servers.items():
            contenders[_named(n)] = _posting(server, _path(name, "samples"), samples)
        print_rates(f"spec: {name}", "requests/s", interleaved(contenders, requests))


def _predicting(bare: Server, servers: dict[int, Server], requests: int) -> None:
    samples = two_classes(requests, 0)
    print(f"### Single predictions as JSON, {CONNECTIONS} connections, a set of {SET}\n")
    for name in SPECS:
        contenders = {"bare FastAPI, the same body": _posting(bare, "/samples", samples)}
        for n, server in servers.items():
            made = predict_requests(_path(name, "predict"), samples)
            contenders[_named(n)] = partial(_post, server, made)
        print_rates(f"spec: {name}", "requests/s", interleaved(contenders, requests))


def _posting(server: Server, path: str, samples: Any) -> Callable[[int], Load]:
    return partial(_post, server, learn_requests(path, samples))


def _post(server: Server, requests: list[bytes], n: int) -> Load:
    return post_all(server.url, requests[:n], CONNECTIONS)


def _predicting_while_learning(servers: dict[int, Server]) -> None:
    """Predictions at a fixed pace, while four connections learn as fast as they can, and alone."""
    samples = two_classes(PACED, 3)
    asked = predict_requests(_path("papers", "predict"), samples)
    taught = learn_requests(_path("papers", "samples"), samples)
    print(
        f"### Predictions at {PACE:.0f} a second, while nothing else happens and while it learns\n"
    )
    print("| | idle p50 ms | idle p99 ms | learning p50 ms | learning p99 ms | p99 ratio |")
    print("|---|---:|---:|---:|---:|---:|")
    for n, server in servers.items():
        idle = post_at_rate(server.url, asked, PACE, 8)
        ended = threading.Event()
        beside = threading.Thread(target=saturate, args=(server.url, taught, 4, ended.is_set))
        beside.start()
        learning = post_at_rate(server.url, asked, PACE, 8)
        ended.set()
        beside.join()
        print(
            f"| {_named(n)} | {idle.p50_ms:.2f} | {idle.p99_ms:.2f} | {learning.p50_ms:.2f} | "
            f"{learning.p99_ms:.2f} | {learning.p99_ms / idle.p99_ms:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
