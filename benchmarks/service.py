"""The service on loopback: its start, latencies, challengers, River, and many streams for a while.

    python -m benchmarks start            seconds from the command; first_fits: of an estimator
    python -m benchmarks latency          predictions while the server learns; mixed: both in turn
    python -m benchmarks challengers      how much a challenger slows the answers of its champion
    python -m benchmarks beside_river     the same stream as River behind FastAPI
    python -m benchmarks soak             many websocket streams: no error, memory that stays

`WOLFSTREAM_PYTHON` names the interpreter of another installation to be started, of a wheel for
example. Rates are measured in `benchmarks.service_rates`.
"""

import asyncio
import json
import multiprocessing
import multiprocessing.synchronize
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np

from benchmarks.asset_problems import Codes
from benchmarks.asset_stream import COMPONENTS, GAMMA, LAST, Standardiser
from benchmarks.bodies import (
    PAPERS,
    batch_requests,
    full_model,
    learn_frames,
    learn_requests,
    predict_requests,
    two_classes,
)
from benchmarks.frames import open_streams
from benchmarks.harness import Options, Study
from benchmarks.load import (
    Connection,
    Load,
    load_of,
    post_all,
    post_at_rate,
    post_request,
    running,
    saturate,
)
from benchmarks.processes import Server, uvicorn, wolfstream
from benchmarks.results import Figures, Results, listed, markdown, mean, middle
from benchmarks.service_rates import table as rates_table
from wolfstream.solver.arrays import Float64Array

PYTHON = os.environ.get("WOLFSTREAM_PYTHON", sys.executable)
# 200 samples are fitted in a tenth of a second.
_FIT = """
import time
import numpy as np
began = time.perf_counter()
from wolfstream import {name}
X = np.random.default_rng(0).standard_normal((200, 5))
{name}().fit(X, X[:, 0] > 0)
print(time.perf_counter() - began)
"""
_ESTIMATORS = ("SFWClassifier", "AssetClassifier", "FrankWolfeClassifier")
_ROWS = [[0.1, 0.2], [0.9, 0.8], [0.2, 0.1]]
_SAMPLES = {"x": _ROWS, "y": [0, 1, 0]}

FULL, MIXED = 5_000, 6_000
PER_SECOND, SECONDS, CONNECTIONS = 200, 10, 4
_SETTLE_SECONDS = 1.0

BATCH, PHASE_REQUESTS = 64, 60
# Seconds between two requests of the client; 0 sends the next one at once.
PACES = {"one after another": 0.0, "ten a second": 0.1}

RIVER_SAMPLES = 6_400
ELEC2 = Path(__file__).resolve().parent.parent / "tests" / "data" / "elec2.npz"
BESIDE_RIVER: dict[str, dict[str, Any] | None] = {
    "River behind FastAPI": None,
    f"ASSET, {COMPONENTS} Fourier features": {
        "kernel": {"type": "rbf", "gamma": GAMMA},
        "working_set": None,
        "asset": {"dimension": COMPONENTS, "average": LAST["average"], "lambda": LAST["lam"]},
        "serve": "asset",
    },
    "working set, the defaults": {"asset": None},
}

STREAMS, MODELS, WINDOW, SIZE, SOAK_SECONDS = 256, 4, 4, 500, 60.0
_WARM_SECONDS = 5.0


@contextmanager
def empty_folder(_: Options) -> Iterator[Path]:
    """A folder for data and compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def starts(python: str, folder: Path, _: Options) -> Figures:
    """Seconds from the command, with an empty cache of compiled code and with what it leaves."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "compiled")}
    figures, began = Figures(), time.perf_counter()
    with wolfstream(folder / "data", python, environment) as server:
        figures["first start: `/readyz`"] = time.perf_counter() - began
        with httpx.Client(base_url=server.url, timeout=300) as client:
            _first_sample(client, "m", _SAMPLES)
            figures["the first sample is learned and predicted"] = time.perf_counter() - began
            named = [{"a": row[0], "b": row[1]} for row in _ROWS]
            _first_sample(client, "named", _SAMPLES | {"x": named})
            figures["the same of named numbers"] = time.perf_counter() - began
            while "compiling" in client.get("/readyz").json():
                time.sleep(0.1)
            figures["everything is compiled"] = time.perf_counter() - began
    for name, data in (("with two models", "data"), ("without a model", "other")):
        began = time.perf_counter()
        with wolfstream(folder / data, python, environment):
            figures[f"restart {name}: `/readyz`"] = time.perf_counter() - began
    return figures


def _first_sample(client: httpx.Client, name: str, samples: dict[str, Any]) -> None:
    client.put(f"/v1/models/{name}", json={}).raise_for_status()
    client.post(f"/v1/models/{name}/samples", json=samples).raise_for_status()
    client.post(f"/v1/models/{name}/predict", json={"x": samples["x"]}).raise_for_status()


def starts_table(kept: Results) -> str:
    """Return seconds by what has been reached."""
    (figures, *_) = kept.of(kept.contenders[0], kept.data[0])
    return markdown(["seconds until", ""], [[name, f"{s:.1f}"] for name, s in figures.items()])


def first_fit(name: str, folder: Path, _: Options) -> Figures:
    """Seconds of the import and a fit of 200 samples, each in a process of its own."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / name)}
    command = [PYTHON, "-c", _FIT.format(name=name)]
    seconds = [
        float(subprocess.check_output(command, env=environment, cwd=folder)) for _ in range(2)
    ]
    return {"empty": seconds[0], "again": seconds[1]}


class Full(NamedTuple):
    """A server, and the path of a model whose set is full."""

    url: str
    path: str


@contextmanager
def full_server(options: Options) -> Iterator[Full]:
    """A server with a set of 5,000, the papers' spec."""
    with tempfile.TemporaryDirectory() as folder, wolfstream(Path(folder) / "data") as ours:
        size = min(FULL, options.rows or FULL)
        yield Full(ours.url, full_model(ours.url, "latency", PAPERS, size))


def mixed(connections: int, full: Full, options: Options) -> Figures:
    """Learn and predict in turn."""
    samples = two_classes(min(MIXED, options.rows or MIXED), options.seed)
    learn = learn_requests(f"{full.path}/samples", samples)
    predict = predict_requests(f"{full.path}/predict", samples)
    requests = [learn[i] if i % 2 else predict[i] for i in range(len(learn))]
    return _figures(post_all(full.url, requests, connections))


def latency(background: str, full: Full, options: Options) -> Figures:
    """Predict 200 times a second, each timed from when it was due, while the server learns."""
    n = PER_SECOND * SECONDS
    samples = two_classes(min(n, options.rows or n), options.seed)
    learn = {
        "": [],
        "batches": batch_requests(f"{full.path}/samples", samples, 256, packed=True),
        "singles": learn_requests(f"{full.path}/samples", samples),
    }[background]
    predict = predict_requests(f"{full.path}/predict", samples)
    with _learning(full.url, learn, 32 if background == "singles" else 4):
        return _figures(post_at_rate(full.url, predict, PER_SECOND, CONNECTIONS))


def _figures(load: Load) -> Figures:
    return load._asdict() | {"rate": load.rate}


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


def latency_table(kept: Results) -> str:
    """Return the run of the median p99, also as a multiple of idle's."""
    rows, idle = [], 0.0
    for contender in kept.contenders:
        figures = kept.of(contender, kept.data[0])
        at = middle(figures, "p99_ms")
        run = min(figures, key=lambda each: abs(each["p99_ms"] - at))
        idle = idle or run["p99_ms"]
        times = [f"{run['p50_ms']:.2f}", f"{run['p99_ms']:.2f}", f"{run['p99_ms'] / idle:.1f}"]
        rows.append([contender, *times])
    return markdown(["the server is", "p50 ms", "p99 ms", "of idle's"], rows)


class Challenged(NamedTuple):
    """A client of a server with a model alone and one with a challenger, and its pause."""

    client: httpx.Client
    pause: float


@contextmanager
def challenged(pause: float, _: Options) -> Iterator[Challenged]:
    """A server with both, which have learned a phase."""
    with (
        tempfile.TemporaryDirectory() as folder,
        wolfstream(Path(folder) / "data") as ours,
        httpx.Client(base_url=ours.url) as client,
    ):
        specs: dict[str, Any] = {"alone": {}, "champion": {}, "challenger": {"follows": "champion"}}
        for name, spec in specs.items():
            client.put(f"/v1/models/{name}", json=spec).raise_for_status()
        for name in ("alone", "champion"):
            phase(name, Challenged(client, 0.0), Options(Path(), 4 * BATCH, 99))
        yield Challenged(client, pause)


def phase(name: str, challenged: Challenged, options: Options) -> Figures:
    """Post batches and predictions of one row in turn, once the challenger has caught up."""
    client, pause = challenged
    while client.get("/v1/models/challenger").json()["follows"]["lag"]:
        time.sleep(0.02)
    n = min(BATCH * PHASE_REQUESTS, options.rows or BATCH * PHASE_REQUESTS)
    stream = two_classes(n, options.seed)
    X: Any = stream.X
    seconds: dict[str, list[float]] = {"samples": [], "predict": []}
    for start in range(0, n, BATCH):
        rows = X[start : start + BATCH].tolist()
        samples = {"x": rows, "y": stream.y[start : start + BATCH]}
        for call, body in (("samples", samples), ("predict", {"x": rows[:1]})):
            began = time.perf_counter()
            client.post(f"/v1/models/{name}/{call}", json=body).raise_for_status()
            seconds[call].append(time.perf_counter() - began)
        time.sleep(pause)
    return {f"{call}_ms": 1e3 * float(np.median(of)) for call, of in seconds.items()}


def challengers_table(kept: Results) -> str:
    """Return medians of the rounds' medians, and their ratios."""
    rows = []
    for data in kept.data:
        for call in ("samples", "predict"):
            alone, beside = (
                middle(kept.of(name, data), f"{call}_ms") for name in ("alone", "champion")
            )
            cells = [f"{alone:.2f} ms", f"{beside:.2f} ms", f"{beside / alone:.3f}"]
            rows.append([f"{call}, {data}", *cells])
    return markdown(["answers", "alone", "with a challenger", "ratio"], rows)


class Stream(NamedTuple):
    """The stream, standardised by the client; River's server, ours, and where they listen."""

    X: Float64Array
    y: Codes
    river: Server
    ours: Server


@contextmanager
def elec2(options: Options) -> Iterator[Stream]:
    """The first samples of elec2, standardised by the mean and deviation so far."""
    import river  # noqa: F401

    n = options.rows or RIVER_SAMPLES
    with np.load(ELEC2) as data:
        X, y = data["X"][:n].astype(np.float64), data["y"][:n].astype(np.int64)
    with (
        tempfile.TemporaryDirectory() as name,
        uvicorn("benchmarks.river_service:app", Path(name) / "river.log") as peer,
        wolfstream(Path(name) / "data") as ours,
    ):
        yield Stream(Standardiser(X.shape[1]).scale(X), y, peer, ours)


def beside_river(spec: dict[str, Any] | None, stream: Stream, _: Options) -> Figures:
    """Learn the stream in order over one connection, each batch predicted before it is learned."""
    url, path = stream.river.url, "/learn"
    if spec is not None:
        url, path = stream.ours.url, f"/v1/models/m{time.monotonic_ns()}"
        httpx.put(url + path, json=spec).raise_for_status()
        path += "/asset" if spec.get("serve") == "asset" else "/samples"
    requests = []
    for i in range(0, len(stream.y), BATCH):
        body = {"x": stream.X[i : i + BATCH].tolist(), "y": stream.y[i : i + BATCH].tolist()}
        requests.append(post_request(path, json.dumps(body).encode()))

    async def work() -> tuple[float, list[bytes]]:
        connection = await Connection.to(url)
        start = time.perf_counter()
        answers = [await connection.exchange(request) for request in requests]
        seconds = time.perf_counter() - start
        connection.close()
        return seconds, answers

    seconds, answers = running(work())
    predicted = [
        label for answer in answers for label in json.loads(answer)["results"]["prediction"]
    ]
    pairs = zip(predicted, stream.y.tolist(), strict=True)
    right = 100.0 * float(np.mean([a == b for a, b in pairs]))
    return {"rate": len(stream.y) / seconds, "right": right}


def soak(streams: int, seconds: float, _: Options) -> Figures:
    """Run websocket streams of four models for a while, as JSON and MessagePack; look at memory."""
    with tempfile.TemporaryDirectory() as folder, wolfstream(Path(folder) / "data") as ours:
        paths = [full_model(ours.url, f"soak{i}", PAPERS, SIZE) for i in range(MODELS)]
        load, memory = running(_soak(ours, paths, streams, seconds))
    # What the first seconds touch for the first time is no leak.
    times, mb = np.array(memory).T
    settled = mb[times >= _WARM_SECONDS] if times[-1] > 2 * _WARM_SECONDS else mb
    slope = np.polyfit(times[-len(settled) :], settled, 1)[0] * 60.0
    return {
        "rate": load.rate,
        "p99_ms": load.p99_ms,
        "mb_first": float(settled[0]),
        "mb_middle": float(settled[len(settled) // 2]),
        "mb_last": float(settled[-1]),
        "mb_a_minute": float(slope),
    }


async def _soak(
    ours: Server, paths: list[str], n_streams: int, seconds: float
) -> tuple[Load, list[tuple[float, float]]]:
    samples = two_classes(2_000, 5)
    frames = {name: learn_frames(samples, name == "msgpack") for name in ("json", "msgpack")}
    start, wanted = time.perf_counter(), []
    for i in range(n_streams):
        name = "msgpack" if i % 2 else "json"
        frames_of = _until(start + seconds, frames[name])
        wanted.append((f"{paths[i % MODELS]}/stream", f"wolfstream.v1.{name}", frames_of))
    streams = await open_streams(ours.url, wanted, WINDOW)
    for stream in streams:
        stream.start()
    memory = []
    while (now := time.perf_counter() - start) < seconds:
        memory.append((now, ours.resident_mb()))
        await asyncio.sleep(min(1.0, seconds / 20))
    await asyncio.gather(*(stream.ended for stream in streams))
    taken = time.perf_counter() - start
    for stream in streams:
        stream.close()
    return load_of([s for stream in streams for s in stream.latencies], taken), memory


def _until(end: float, frames: list[bytes]) -> Iterator[bytes]:
    """Yield the frames over and over until a moment."""
    for data in cycle(frames):
        if time.perf_counter() >= end:
            return
        yield data


STUDIES = {
    "start": Study({PYTHON: PYTHON}, {"an empty cache": empty_folder}, starts, starts_table),
    "first_fits": Study(
        {name: name for name in _ESTIMATORS},
        {"200 samples": empty_folder},
        first_fit,
        partial(
            listed,
            columns={"empty cache, s": mean("empty", ".1f"), "again, s": mean("again", ".1f")},
        ),
    ),
    "mixed": Study(
        {"learning and predicting in turn": 32},
        {"32 connections": full_server},
        mixed,
        rates_table,
        seeds=range(3),
        rounds=True,
    ),
    "latency": Study(
        {
            "idle": "",
            "learning, 4 connections, 256 x MessagePack": "batches",
            "learning, 32 connections, single samples": "singles",
        },
        {"200 predictions/s": full_server},
        latency,
        latency_table,
        seeds=range(3),
        rounds=True,
    ),
    "challengers": Study(
        {"alone": "alone", "champion": "champion"},
        {name: partial(challenged, pause) for name, pause in PACES.items()},
        phase,
        challengers_table,
        seeds=range(6),
        rounds=True,
    ),
    "beside_river": Study(
        BESIDE_RIVER,
        {"elec2": elec2},
        beside_river,
        partial(listed, columns={"samples/s": mean("rate", ",.0f"), "right %": mean("right")}),
    ),
    "soak": Study(
        {f"{STREAMS} streams": STREAMS},
        {"60 s": lambda options: SOAK_SECONDS if options.rows is None else options.rows},
        soak,
        partial(
            listed,
            columns={
                "samples/s": mean("rate", ",.0f"),
                "p99 ms": mean("p99_ms", ".1f"),
                "MB after 5 s": mean("mb_first", ".1f"),
                "in the middle": mean("mb_middle", ".1f"),
                "at the end": mean("mb_last", ".1f"),
                "MB a minute": mean("mb_a_minute", "+.1f"),
            },
        ),
    ),
}
