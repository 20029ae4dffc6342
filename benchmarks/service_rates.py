"""How many requests, frames and samples a second: the service beside a bare FastAPI endpoint.

    python -m benchmarks singles            single samples and predictions over HTTP
    python -m benchmarks websockets         single samples over websockets
    python -m benchmarks batches            batches beside the same model in process
    python -m benchmarks later              predictions with ids, and their labels
    python -m benchmarks workers            learning, predicting and pace by number of workers

An answer of 200 means fsynced, learned and published. Server and client share the machine, and
absolute figures move with it: the ratios are of one run, whose contenders take turns.
"""

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgpack

from benchmarks.bodies import (
    DEFAULT,
    MSGPACK,
    PAPERS,
    Samples,
    batch_requests,
    full_model,
    learn_frames,
    learn_requests,
    predict_requests,
    two_classes,
    with_set_of,
)
from benchmarks.frames import stream_all
from benchmarks.harness import Options, Study
from benchmarks.load import Load, load_of, post_all, post_at_rate, post_request, saturate
from benchmarks.processes import Server, uvicorn, wolfstream
from benchmarks.results import Figures, Results, markdown, middle
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.samples.validation import Samples as Learned
from wolfstream.service.spec.model import read_spec

BARE = "bare FastAPI, the same body"
# A request on one connection waits for its own fsync.
REQUESTS = {1: 1_000, 32: 6_000, 256: 6_000}
FULL, SMALL = 5_000, 500
STREAMS, WINDOW = 32, 8
BATCH_CONNECTIONS, BATCH_SAMPLES, LARGE_BATCH, BATCH = 4, 20_480, 256, 64
SPECS = {"the papers' spec": PAPERS, "the default spec": DEFAULT}
LINEAR: dict[str, Any] = {
    **PAPERS,
    "kernel": {"type": "linear"},
    "working_set": {"max_size": SMALL},
}
ROUNDS = range(3)
# Predictions a second, few enough that one process answers them while it learns.
PACE, PACED = 200.0, 2_000


class Place(NamedTuple):
    """Servers that run, by name; models' paths by name; over how many connections, and how often.

    n: requests or samples of a run.
    """

    servers: Mapping[str, Server]
    paths: Mapping[str, str]
    connections: int
    n: int
    spec: dict[str, Any] = DEFAULT
    packed: bool = False


Contender = Callable[[Place, int], Load]


def measure(contender: Contender, place: Place, options: Options) -> Figures:
    """Run a contender in a round; rate: of requests."""
    load = contender(place, options.seed)
    return load._asdict() | {"rate": load.rate}


def table(kept: Results, unit: str = "requests/s", size: Callable[[str], int] = lambda _: 1) -> str:
    """Return each contender's run of the median rate, and its ratio to the first one's."""
    rows = []
    for data in kept.data:
        first = 0.0
        for contender in kept.contenders:
            figures = kept.of(contender, data)
            if not figures:
                continue
            at = middle(figures, "rate")
            run = min(figures, key=lambda each: abs(each["rate"] - at))
            rate = size(contender) * run["rate"]
            first = first or rate
            times = [f"{run[name]:.2f}" for name in ("p50_ms", "p99_ms", "p999_ms")]
            rows.append([data, contender, f"{rate:,.0f}", *times, f"{rate / first:.2f}"])
    return markdown(["", "", unit, "p50 ms", "p99 ms", "p99.9 ms", "ratio"], rows)


@contextmanager
def beside_bare(connections: int, options: Options) -> Iterator[Place]:
    """A bare endpoint, and a server with models of two sizes and two specs."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        bare = stack.enter_context(uvicorn("benchmarks.bare:app", folder / "bare.log"))
        ours = stack.enter_context(wolfstream(folder / "data"))
        few = min(FULL, options.rows or FULL)
        paths = {
            "full": full_model(ours.url, "full", PAPERS, few),
            "small": full_model(ours.url, "small", PAPERS, SMALL),
            "default": full_model(ours.url, "default", DEFAULT, SMALL),
        }
        n = min(REQUESTS[connections], options.rows or REQUESTS[connections])
        yield Place({"bare": bare, "ours": ours}, paths, connections, n)


def bare(place: Place, seed: int) -> Load:
    """Post samples to the bare endpoint."""
    requests = learn_requests("/samples", two_classes(place.n, seed))
    return post_all(place.servers["bare"].url, requests, place.connections)


def learn(model: str, place: Place, seed: int, server: str = "ours") -> Load:
    """Post single samples."""
    path = f"{place.paths[model]}/samples"
    requests = learn_requests(path, two_classes(place.n, seed))
    return post_all(place.servers[server].url, requests, place.connections)


def predict(model: str, place: Place, seed: int, server: str = "ours") -> Load:
    """Post single rows."""
    path = f"{place.paths[model]}/predict"
    requests = predict_requests(path, two_classes(place.n, seed))
    return post_all(place.servers[server].url, requests, place.connections)


def over_websockets(packed: bool, place: Place, seed: int) -> Load:
    """Send single samples over 32 websockets, with at most eight frames unanswered each."""
    frames = learn_frames(two_classes(place.n, seed), packed)
    protocol = f"wolfstream.v1.{'msgpack' if packed else 'json'}"
    path = f"{place.paths['full']}/stream"
    return stream_all(place.servers["ours"].url, path, protocol, frames, STREAMS, WINDOW)


@contextmanager
def learning_places(spec: dict[str, Any], options: Options) -> Iterator[Place]:
    """A server with a model whose set is full."""
    n = min(BATCH_SAMPLES, options.rows or BATCH_SAMPLES)
    with tempfile.TemporaryDirectory() as folder, wolfstream(Path(folder) / "data") as ours:
        path = full_model(ours.url, "batches", spec, min(FULL, n))
        yield Place({"ours": ours}, {"full": path}, BATCH_CONNECTIONS, n, spec)


def post_batches(size: int, packed: bool, place: Place, seed: int) -> Load:
    """Post batches of a size over four connections."""
    path = f"{place.paths['full']}/samples"
    requests = batch_requests(path, two_classes(place.n, seed), size, packed)
    return post_all(place.servers["ours"].url, requests, place.connections)


def in_process(place: Place, seed: int) -> Load:
    """Learn in blocks of 256 without a server, and publish after each as a server does."""
    size = min(FULL, place.n)
    learner = Learner(Model(1, "alone", read_spec(with_set_of(place.spec, size))))
    _absorbed(learner, two_classes(4 * size, 99))
    return _absorbed(learner, two_classes(place.n, seed))


def _absorbed(learner: Learner, samples: Samples) -> Load:
    latencies, start = list[float](), time.perf_counter()
    for i in range(0, len(samples.y), LARGE_BATCH):
        began, part = time.perf_counter(), slice(i, i + LARGE_BATCH)
        learner.absorb("working_set", Learned(samples.X[part], samples.y[part]))
        learner.publish()
        latencies.append(time.perf_counter() - began)
    return load_of(latencies, time.perf_counter() - start)


def batch_size(contender: str) -> int:
    """How many samples a request of a contender has."""
    return LARGE_BATCH if contender.startswith(("256", "in process")) else BATCH


@contextmanager
def waiting(spec: dict[str, Any], packed: bool, options: Options) -> Iterator[Place]:
    """A server with a model whose rows wait for their labels."""
    n = min(BATCH_SAMPLES, options.rows or BATCH_SAMPLES) // BATCH * BATCH
    with tempfile.TemporaryDirectory() as folder, wolfstream(Path(folder) / "data") as ours:
        path = "/v1/models/later"
        httpx.put(ours.url + path, json=spec).raise_for_status()
        warm = batch_requests(f"{path}/samples", two_classes(2_000, 99), 250, True)
        post_all(ours.url, warm, 1)
        yield Place({"ours": ours}, {"full": path}, BATCH_CONNECTIONS, n, spec, packed)


def predict_batches(with_ids: bool, place: Place, seed: int) -> Load:
    """Post rows; their ids are those of the round."""
    samples, requests = two_classes(place.n, seed), []
    for start in range(0, place.n, BATCH):
        X: Any = samples.X[start : start + BATCH]
        raw = {"dtype": "<f8", "shape": list(X.shape), "data": X.tobytes()}
        ids = {"ids": _ids(seed, start)} if with_ids else {}
        body = {"x": raw if place.packed else X.tolist(), **ids}
        requests.append(_request(f"{place.paths['full']}/predict", body, place.packed))
    return post_all(place.servers["ours"].url, requests, place.connections)


def post_labels(place: Place, seed: int) -> Load:
    """Post the labels of the rows that were predicted with ids before."""
    labels, requests = two_classes(place.n, seed).y, []
    for start in range(0, place.n, BATCH):
        body = {"ids": _ids(seed, start), "y": labels[start : start + BATCH]}
        requests.append(_request(f"{place.paths['full']}/labels", body, place.packed))
    return post_all(place.servers["ours"].url, requests, place.connections)


def _ids(seed: int, start: int) -> list[str]:
    return [f"{seed}-{row}" for row in range(start, start + BATCH)]


def _request(path: str, body: Any, packed: bool) -> bytes:
    if packed:
        return post_request(path, msgpack.packb(body), MSGPACK)
    return post_request(path, json.dumps(body).encode())


WORKERS = {"one process": 0, "a leader and one worker": 1, "a leader and two workers": 2}


@contextmanager
def with_workers(spec: dict[str, Any], options: Options) -> Iterator[Place]:
    """A bare endpoint, and servers with workers, each with a model of a spec."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        bare = stack.enter_context(uvicorn("benchmarks.bare:app", folder / "bare.log"))
        servers = {"bare": bare}
        for server, workers in WORKERS.items():
            worker_folder = folder / f"of{workers}"
            worker_folder.mkdir()
            environment = os.environ | {"WOLFSTREAM_WORKERS": str(workers)}
            started = wolfstream(worker_folder / "data", environment=environment)
            servers[server] = stack.enter_context(started)
            full_model(servers[server].url, "m", spec, SMALL)
        n = min(4_000, options.rows or 4_000)
        yield Place(servers, {"m": "/v1/models/m"}, 32, n)


def paced(server: str, learning: bool, place: Place, seed: int) -> Load:
    """Predict at a fixed pace, while nothing else happens or while four connections learn."""
    url, n = place.servers[server].url, min(PACED, place.n)
    samples = two_classes(n, seed)
    requests = predict_requests("/v1/models/m/predict", samples)
    if not learning:
        return post_at_rate(url, requests, PACE, 8)
    ended, taught = threading.Event(), learn_requests("/v1/models/m/samples", samples)
    beside = threading.Thread(target=saturate, args=(url, taught, 4, ended.is_set))
    beside.start()
    try:
        return post_at_rate(url, requests, PACE, 8)
    finally:
        ended.set()
        beside.join()


def worker_study(call: Any) -> Study:
    """Return a study of single requests of a call by number of workers."""
    contenders = {BARE: bare} | {name: partial(call, "m", server=name) for name in WORKERS}
    return Study(
        contenders,
        {name: partial(with_workers, spec) for name, spec in SPECS.items()},
        measure,
        table,
        seeds=ROUNDS,
        rounds=True,
    )


STUDIES = {
    "singles": Study(
        {
            BARE: bare,
            "learn, durable": partial(learn, "full"),
            "learn, durable, a set of 500": partial(learn, "small"),
            "learn, durable, a set of 500, the default spec": partial(learn, "default"),
            "predict": partial(predict, "full"),
            "predict, a set of 500": partial(predict, "small"),
            "predict, a set of 500, the default spec": partial(predict, "default"),
        },
        {f"connections: {n}": partial(beside_bare, n) for n in REQUESTS},
        measure,
        table,
        seeds=ROUNDS,
        rounds=True,
    ),
    "websockets": Study(
        {
            "learn over HTTP": partial(learn, "full"),
            "learn over websockets, JSON": partial(over_websockets, False),
            "learn over websockets, MessagePack": partial(over_websockets, True),
        },
        {f"{STREAMS} connections": partial(beside_bare, STREAMS)},
        measure,
        partial(table, unit="samples/s"),
        seeds=ROUNDS,
        rounds=True,
    ),
    "batches": Study(
        {
            "in process, blocks of 256": in_process,
            "64 samples as JSON": partial(post_batches, BATCH, False),
            "64 samples as MessagePack": partial(post_batches, BATCH, True),
            "256 samples as JSON": partial(post_batches, LARGE_BATCH, False),
            "256 samples as MessagePack": partial(post_batches, LARGE_BATCH, True),
        },
        {name: partial(learning_places, spec) for name, spec in SPECS.items()},
        measure,
        partial(table, unit="samples/s", size=batch_size),
        seeds=ROUNDS,
        rounds=True,
    ),
    "later": Study(
        {
            "predict": partial(predict_batches, False),
            "predict with ids": partial(predict_batches, True),
            "samples": lambda place, seed: post_batches(BATCH, place.packed, place, seed),
            # After the predictions of the round.
            "labels": post_labels,
        },
        {
            f"{name}, {form}": partial(waiting, spec, form == "MessagePack")
            for name, spec in {"the default spec": DEFAULT, "a linear set of 500": LINEAR}.items()
            for form in ("JSON", "MessagePack")
        },
        measure,
        table,
        seeds=ROUNDS,
        rounds=True,
    ),
    "workers": worker_study(learn),
    "predicting_workers": worker_study(predict),
    "paced_workers": Study(
        {
            f"{name}, {'learning' if learning else 'idle'}": partial(paced, name, learning)
            for name in WORKERS
            for learning in (False, True)
        },
        {"the papers' spec": partial(with_workers, PAPERS)},
        measure,
        table,
        seeds=ROUNDS,
        rounds=True,
    ),
}
