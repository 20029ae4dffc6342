"""The service, durable, beside River behind FastAPI, on the same stream."""

import importlib.util
import json
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.asset_problems import Codes
from benchmarks.asset_stream import COMPONENTS, GAMMA, LAST, Standardiser
from benchmarks.load import Connection, post_request, running
from benchmarks.processes import uvicorn, wolfstream
from wolfstream.solver.arrays import Float64Array

BATCH = 64
ELEC2 = Path(__file__).resolve().parent.parent / "tests" / "data" / "elec2.npz"
SPECS: dict[str, dict[str, Any]] = {
    f"ASSET, {COMPONENTS} Fourier features": {
        "kernel": {"type": "rbf", "gamma": GAMMA},
        "working_set": None,
        "asset": {"dimension": COMPONENTS, "average": LAST["average"], "lambda": LAST["lam"]},
        "serve": "asset",
    },
    "working set, the defaults": {"asset": None},
}


def beside_river(folder: Path, n: int) -> None:
    """A table of samples a second and prequential accuracy."""
    if importlib.util.find_spec("river") is None:
        print("### Beside River\n\nSkipped: pip install 'wolfstream[peers]' brings River.\n")
        return
    X, y = _stream(n)
    again = 100.0 * float((y[1:] == y[:-1]).mean())
    print(
        f"### Beside River: the first {len(y):,} samples of elec2, batches of {BATCH}, one "
        "connection\n\nEach sample predicted before it is learned; standardised by the client by "
        "the mean and deviation so far, the same numbers for all. River has RBFSampler "
        f"({COMPONENTS} components) and LogisticRegression, and keeps nothing on disk; ours is "
        f"durable. To say the last label again is right {again:.2f}% of the time.\n\n"
        "| | samples/s | of River's | right % |\n|---|---:|---:|---:|"
    )
    with uvicorn("benchmarks.river_service:app", folder / "river.log") as peer:
        seconds, right = _learned(peer.url, "/learn", X, y)
    rate = len(y) / seconds
    print(f"| River behind FastAPI | {rate:,.0f} | 1.0 | {right:.2f} |", flush=True)
    with wolfstream(folder / "beside") as ours:
        for i, (name, spec) in enumerate(SPECS.items()):
            path = f"/v1/models/m{i}"
            httpx.put(ours.url + path, json=spec).raise_for_status()
            call = "asset" if spec.get("serve") == "asset" else "samples"
            seconds, right = _learned(ours.url, f"{path}/{call}", X, y)
            of_river = len(y) / seconds / rate
            print(
                f"| {name} | {len(y) / seconds:,.0f} | {of_river:.1f} | {right:.2f} |", flush=True
            )
    print()


def _stream(n: int) -> tuple[Float64Array, Codes]:
    with np.load(ELEC2) as data:
        X, y = data["X"][:n].astype(np.float64), data["y"][:n].astype(np.int64)
    return Standardiser(X.shape[1]).scale(X), y


def _learned(url: str, path: str, X: Float64Array, y: Codes) -> tuple[float, float]:
    """Seconds for the stream in order, and the percentage that was predicted rightly."""
    requests = []
    for i in range(0, len(y), BATCH):
        body = {"x": X[i : i + BATCH].tolist(), "y": y[i : i + BATCH].tolist()}
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
    return seconds, 100.0 * float(
        np.mean([a == b for a, b in zip(predicted, y.tolist(), strict=True)])
    )
