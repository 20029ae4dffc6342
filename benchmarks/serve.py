"""The service against a bare FastAPI endpoint, and against its own learner in process.

    python -m benchmarks.serve

Everything on loopback, bounded, durable: an answer of 200 means fsynced and learned.
"""

import json
import tempfile
import time
from pathlib import Path

import httpx
import msgpack
import numpy as np
import threadpoolctl
from rich.console import Console
from rich.table import Table

from benchmarks.load import Load, post_all, post_request
from benchmarks.machine import machine_line
from benchmarks.processes import bare_fastapi, wolfstream
from service.model import head_for
from service.samples import Samples
from service.spec import ModelSpec
from service.targets import Label

FEATURES, CONNECTIONS = 20, 32
SINGLES, BATCHES, BATCH = 20_000, 200, 256
SPEC = {"asset": None}


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):  # the first start compiles where the sources are new
            start = time.perf_counter()
            with wolfstream(Path(folder) / "start"):
                start_seconds = time.perf_counter() - start
        bare, learn = singles(Path(folder))
        batch_rate = batches(Path(folder))
    absorb_rate = in_process()
    table = Table(title=f"Learning over HTTP, durable, loopback\n{machine_line()}")
    for column in ("", "per second", "p50 ms", "p99 ms", "ratio"):
        table.add_column(column, justify="right")
    _add(table, f"bare FastAPI, 1 x {FEATURES} numbers, JSON", bare, "1")
    _add(table, "learn, the same body", learn, f"{learn.rate / bare.rate:.2f}")
    table.add_row("absorb in process, samples", f"{absorb_rate:.0f}", "", "", "1")
    ratio = f"{batch_rate / absorb_rate:.2f}"
    table.add_row(f"learn, {BATCH} x MessagePack, samples", f"{batch_rate:.0f}", "", "", ratio)
    console = Console(width=100)
    console.print(table)
    console.print(f"starting an empty server, kernels cached: {start_seconds:.2f} s")


def stream(n: int, seed: int) -> Samples:
    """Two noisy classes in 20 dimensions, not linearly separable."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, FEATURES))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * random.standard_normal(n)
    labels: list[Label] = (score > 0).astype(int).tolist()
    return Samples(X, labels)


def singles(folder: Path) -> tuple[Load, Load]:
    """Single samples as JSON: the bare endpoint, then learning; best of three each."""
    samples = stream(SINGLES, 0)
    bodies = [
        json.dumps({"x": x, "y": y}).encode()
        for x, y in zip(samples.X.tolist(), samples.y, strict=True)
    ]
    bare, learn = [], []
    with bare_fastapi(folder / "bare.log") as bare_url, wolfstream(folder / "singles") as url:
        for run in range(3):
            httpx.put(f"{url}/v1/models/s{run}", json=SPEC).raise_for_status()
            requests = [post_request("/samples", body) for body in bodies]
            bare.append(post_all(bare_url, requests, CONNECTIONS))
            requests = [post_request(f"/v1/models/s{run}/samples", body) for body in bodies]
            learn.append(post_all(url, requests, CONNECTIONS))
    return max(bare, key=lambda load: load.rate), max(learn, key=lambda load: load.rate)


def batches(folder: Path) -> float:
    """Samples per second in MessagePack batches over four connections; best of three."""
    samples = stream(BATCHES * BATCH, 1)
    rates = []
    with wolfstream(folder / "batches") as url:
        for run in range(3):
            httpx.put(f"{url}/v1/models/b{run}", json=SPEC).raise_for_status()
            requests = [
                post_request(f"/v1/models/b{run}/samples", body, "application/vnd.msgpack")
                for body in _batch_bodies(samples)
            ]
            rates.append(post_all(url, requests, 4).rate * BATCH)
    return max(rates)


def in_process() -> float:
    """Samples per second of the same learner without a server; best of three."""
    samples = stream(BATCHES * BATCH, 1)
    rates = []
    with threadpoolctl.threadpool_limits(1):
        for _ in range(4):
            head = head_for("working_set", ModelSpec.model_validate(SPEC))
            start = time.perf_counter()
            for i in range(0, len(samples.X), BATCH):
                head.absorb(samples.X[i : i + BATCH], samples.y[i : i + BATCH])
            rates.append(len(samples.X) / (time.perf_counter() - start))
    return max(rates)


def _batch_bodies(samples: Samples) -> list[bytes]:
    bodies = []
    for i in range(0, len(samples.X), BATCH):
        X = samples.X[i : i + BATCH]
        raw = {"dtype": "<f8", "shape": list(X.shape), "data": X.tobytes()}
        bodies.append(msgpack.packb({"x": raw, "y": samples.y[i : i + BATCH]}))
    return bodies


def _add(table: Table, title: str, load: Load, ratio: str) -> None:
    table.add_row(title, f"{load.rate:.0f}", f"{load.p50_ms:.1f}", f"{load.p99_ms:.1f}", ratio)


if __name__ == "__main__":
    main()
