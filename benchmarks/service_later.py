"""Predictions whose rows wait for their labels, beside ones without; labels beside samples."""

import json
from pathlib import Path
from typing import Any

import httpx
import msgpack

from benchmarks.bodies import MSGPACK, Samples, batch_requests, two_classes
from benchmarks.load import Load, post_all, post_request
from benchmarks.processes import wolfstream
from benchmarks.service_rates import ROUNDS, middle, print_rates

SIZE, CONNECTIONS, SAMPLES = 64, 4, 20_480
SPECS: dict[str, dict[str, Any]] = {
    "the default spec": {},
    "a linear working set of 500": {
        "prepare": None,
        "adaptive": None,
        "asset": None,
        "kernel": {"type": "linear"},
        "working_set": {"max_size": 500},
    },
}


def labels_later(folder: Path) -> None:
    """Batches as JSON and as MessagePack, of two specs; each kind of call once a round."""
    with wolfstream(folder / "later") as ours:
        for number, (name, spec) in enumerate(SPECS.items()):
            path = f"/v1/models/later{number}"
            httpx.put(ours.url + path, json=spec).raise_for_status()
            warm = batch_requests(f"{path}/samples", two_classes(2_000, 99), 250, True)
            post_all(ours.url, warm, 1)
            for packed in (False, True):
                found = _rates(ours.url, path, packed)
                kind = "MessagePack" if packed else "JSON"
                print(f"### Batches of {SIZE} over {CONNECTIONS} connections, {kind}, {name}\n")
                for calls in (("predict", "predict with ids"), ("samples", "labels")):
                    of_calls = {call: found[call] for call in calls}
                    print_rates(calls[0], "requests/s", of_calls)


def _rates(url: str, path: str, packed: bool) -> dict[str, Load]:
    """Return the median run of each kind of call."""
    loads: dict[str, list[Load]] = {}
    for number in range(ROUNDS):
        samples = two_classes(SAMPLES, number)
        of_round = f"{packed}{number}"
        prepared = {
            "predict": _predictions(path, samples, packed, None),
            "predict with ids": _predictions(path, samples, packed, of_round),
            "samples": batch_requests(f"{path}/samples", samples, SIZE, packed),
            "labels": _labels(path, samples, packed, of_round),
        }
        for call, requests in prepared.items():
            loads.setdefault(call, []).append(post_all(url, requests, CONNECTIONS))
    return {call: middle(of_call) for call, of_call in loads.items()}


def _ids(of_round: str, start: int) -> list[str]:
    return [f"{of_round}-{row}" for row in range(start, start + SIZE)]


def _predictions(path: str, samples: Samples, packed: bool, of_round: str | None) -> list[bytes]:
    requests = []
    for start in range(0, len(samples.y), SIZE):
        X: Any = samples.X[start : start + SIZE]
        raw = {"dtype": "<f8", "shape": list(X.shape), "data": X.tobytes()}
        ids = {} if of_round is None else {"ids": _ids(of_round, start)}
        body = {"x": raw if packed else X.tolist(), **ids}
        requests.append(_post(f"{path}/predict", body, packed))
    return requests


def _labels(path: str, samples: Samples, packed: bool, of_round: str) -> list[bytes]:
    return [
        _post(
            f"{path}/labels",
            {"ids": _ids(of_round, start), "y": samples.y[start : start + SIZE]},
            packed,
        )
        for start in range(0, len(samples.y), SIZE)
    ]


def _post(path: str, body: Any, packed: bool) -> bytes:
    if packed:
        return post_request(path, msgpack.packb(body), MSGPACK)
    return post_request(path, json.dumps(body).encode())
