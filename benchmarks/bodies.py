"""What the benchmarks of the service send: two noisy classes, as JSON and MessagePack."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import msgpack
import numpy as np
from numpy.typing import NDArray

from benchmarks.frames import BINARY, TEXT, frame
from benchmarks.load import post_all, post_request
from wolfstream.service.samples.labels import Label

FEATURES = 20
# The papers' spec is that of the first version, which knew neither preparation nor the bank.
PAPERS: dict[str, Any] = {"prepare": None, "adaptive": None, "asset": None}
DEFAULT: dict[str, Any] = {}
MSGPACK = "application/vnd.msgpack"


class Samples(NamedTuple):
    """Rows, (n, FEATURES), and their labels."""

    X: NDArray[np.float64]
    y: list[Label]


def two_classes(n: int, seed: int) -> Samples:
    """Two noisy classes in 20 dimensions, not linearly separable."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, FEATURES))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * random.standard_normal(n)
    labels: list[Label] = (score > 0).astype(int).tolist()
    return Samples(X, labels)


def singles(samples: Samples) -> Iterator[dict[str, Any]]:
    """Yield each sample as plain data."""
    for x, y in zip(samples.X.tolist(), samples.y, strict=True):
        yield {"x": x, "y": y}


def learn_requests(path: str, samples: Samples) -> list[bytes]:
    """Return a POST for each sample."""
    return [post_request(path, json.dumps(body).encode()) for body in singles(samples)]


def predict_requests(path: str, samples: Samples) -> list[bytes]:
    """Return a POST for each row."""
    rows = samples.X.tolist()
    return [post_request(path, json.dumps({"x": x}).encode()) for x in rows]


def batch_requests(path: str, samples: Samples, size: int, packed: bool) -> list[bytes]:
    """Return a POST for so many samples at a time; packed: MessagePack with a raw array of rows."""
    requests = []
    for i in range(0, len(samples.y), size):
        X, y = samples.X[i : i + size], samples.y[i : i + size]
        if packed:
            raw = {"dtype": "<f8", "shape": list(X.shape), "data": X.tobytes()}
            requests.append(post_request(path, msgpack.packb({"x": raw, "y": y}), MSGPACK))
        else:
            requests.append(post_request(path, json.dumps({"x": X.tolist(), "y": y}).encode()))
    return requests


def learn_frames(samples: Samples, packed: bool) -> list[bytes]:
    """Return a websocket frame for each sample."""
    frames = []
    for i, body in enumerate(singles(samples)):
        plain = {"id": i, "op": "learn", **body}
        if packed:
            frames.append(frame(msgpack.packb(plain), BINARY))
        else:
            frames.append(frame(json.dumps(plain).encode(), TEXT))
    return frames


def with_set_of(spec: dict[str, Any], size: int) -> dict[str, Any]:
    """Return a spec with a bound on its working set."""
    return {**spec, "working_set": {"max_size": size}}


def full_model(url: str, name: str, spec: dict[str, Any], size: int) -> str:
    """Make a model whose working set is at its bound, so that it costs the same ever after."""
    path = f"/v1/models/{name}"
    httpx.put(url + path, json=with_set_of(spec, size)).raise_for_status()
    requests = batch_requests(f"{path}/samples", two_classes(4 * size, 99), 250, True)
    for i in range(0, len(requests), 8):
        post_all(url, requests[i : i + 8], 1)
        description = httpx.get(url + path).json()
        if description["heads"]["working_set"]["size"] >= 0.95 * size:
            break
    return path
