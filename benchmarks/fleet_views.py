"""Three replicas of a fleet: the views that those follow who do not lead a model."""

import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx
import numpy as np

from tests.service.fleet.conftest import Replica
from tests.service.nats import NatsServers

T = TypeVar("T")

_SPEC = {"prepare": None, "adaptive": None, "asset": None}
_SET = {"max_size": 2_000}
_BATCH, _PER_SECOND = 50, 500
_MEMBERS = 10_000
_MODEL = "views"


def print_views(folder: Path, seconds: float) -> None:
    """Print how views are followed: the lag, the first one, and predictions without a leader."""
    nats = NatsServers(folder / "nats-views", 3, sync=True).start()
    replicas = [Replica(folder / f"views{number}", nats) for number in range(3)]
    try:
        for one in replicas:
            one.launch()
        for one in replicas:
            one.wait()
        print("\n| views | median | 99% | longest |\n|---|---|---|---|")
        urls = [one.url for one in replicas]
        print_lag(urls, seconds)
        print_first(replicas)
        print_without_leader(replicas)
    finally:
        for one in replicas:
            one.close()
        nats.close()


def print_lag(urls: list[str], seconds: float) -> None:
    """From an acknowledgement until another replica predicts with what was learned."""
    _make(urls[0], _MODEL, _SET)
    leader, *others = _leader_first(urls, _MODEL)
    _learn(leader, _MODEL, _samples(2_000))
    acknowledged = list[tuple[int, float]]()  # sequences, and when
    with _repeated(lambda client: _wait_at(others, acknowledged, client)) as waited:
        end, due, n_requests = time.monotonic() + seconds, time.monotonic(), 0
        with httpx.Client(timeout=60) as client:
            while time.monotonic() < end:
                sequence = _learn(leader, _MODEL, _samples(_BATCH, n_requests), client)
                acknowledged.append((sequence, time.monotonic()))
                n_requests += 1
                due += _BATCH / _PER_SECOND
                time.sleep(max(0.0, due - time.monotonic()))
    found = [one for one in waited if one is not None]
    _print_row(f"behind an acknowledgement, {n_requests * _BATCH / seconds:.0f} samples/s", found)


def _wait_at(
    urls: list[str], acknowledged: list[tuple[int, float]], client: httpx.Client
) -> float | None:
    """How long after the last acknowledgement another replica predicts with it; None without."""
    if not acknowledged:
        return None
    sequence, at = acknowledged[-1]
    acknowledged.clear()
    url = f"{urls[sequence // _BATCH % 2]}/v1/models/{_MODEL}/predict"
    client.post(url, params={"min_sequence": sequence}, json=_ROWS).raise_for_status()
    return time.monotonic() - at


@contextmanager
def _repeated(work: Callable[[httpx.Client], T]) -> Iterator[list[T]]:
    """What a function gives that another thread calls again and again."""
    given, ended = list[T](), threading.Event()

    def run() -> None:
        with httpx.Client(timeout=60) as client:
            while not ended.is_set():
                given.append(work(client))
                time.sleep(0.01)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield given
    finally:
        ended.set()
        thread.join()


def print_first(replicas: list[Replica]) -> None:
    """From the first prediction at a replica until it predicts with a view of its own."""
    urls = [one.url for one in replicas]
    name = "large"
    _make(urls[0], name, {"max_size": _MEMBERS, "C": 1.0})
    leader, *others = _leader_first(urls, name)
    random = np.random.default_rng(5)
    members = 0
    while members < _MEMBERS * 0.99:
        X = random.normal(size=(500, 20))
        # Labels without any rule: every sample is needed.
        _learn(leader, name, {"x": X.tolist(), "y": random.integers(2, size=500).tolist()})
        heads = httpx.get(f"{leader}/v1/models/{name}", timeout=60).json()["heads"]
        members = heads["working_set"]["support_vectors"]
    taken = []
    for url in others:
        began = time.monotonic()
        while name not in httpx.get(f"{url}/v1/fleet", timeout=60).json()["views"]:
            httpx.post(f"{url}/v1/models/{name}/predict", json=_ROWS, timeout=60).raise_for_status()
        taken.append(time.monotonic() - began)
    _print_row(f"until the first of {members:,} support vectors is held", taken)


def print_without_leader(replicas: list[Replica]) -> None:
    """The time of predictions at the other replicas while the leader is killed."""
    urls = [one.url for one in replicas]
    leader, *others = _leader_first(urls, _MODEL)
    at_one, at_other = (partial(_predict_at, url) for url in others)
    with _repeated(at_one) as first, _repeated(at_other) as second:
        time.sleep(2.0)
        begun = len(first), len(second)
        replicas[urls.index(leader)].kill()
        began = time.monotonic()
        _learn(others[0], _MODEL, _samples(_BATCH))
        taken_over = time.monotonic() - began
        time.sleep(1.0)
    answered = first[begun[0] :] + second[begun[1] :]
    refused = sum(status != 200 for _, status in answered)
    _print_row(
        f"predictions of the others while the leader is killed ({refused} of {len(answered)} "
        "refused; "
        f"samples are taken again after {taken_over:.1f} s)",
        [seconds for seconds, _ in answered],
    )


def _predict_at(url: str, client: httpx.Client) -> tuple[float, int]:
    """Return how long a prediction took, and its status."""
    began = time.monotonic()
    answer = client.post(f"{url}/v1/models/{_MODEL}/predict", json=_ROWS)
    return time.monotonic() - began, answer.status_code


def _samples(n: int, seed: int = 0) -> dict[str, Any]:
    X = np.random.default_rng(seed).normal(size=(n, 20))
    return {"x": X.tolist(), "y": (X[:, 0] * X[:, 1] > 0).astype(int).tolist()}


_ROWS = {"x": _samples(4, 99)["x"]}


def _make(url: str, name: str, working_set: dict[str, Any]) -> None:
    spec = _SPEC | {"working_set": working_set}
    while httpx.put(f"{url}/v1/models/{name}", json=spec, timeout=60).status_code == 503:
        time.sleep(0.1)


def _learn(url: str, name: str, samples: dict[str, Any], client: httpx.Client | None = None) -> int:
    """Learn; the sequence."""
    post = httpx.post if client is None else client.post
    answer = post(f"{url}/v1/models/{name}/samples", json=samples, timeout=60)
    answer.raise_for_status()
    return int(answer.json()["sequence"])


def _leader_first(urls: list[str], name: str) -> list[str]:
    """Return the replicas, the model's leader first, once it is known."""
    while True:
        replicas = httpx.get(f"{urls[0]}/v1/fleet", timeout=60).json()["replicas"]
        leading = [one["url"] for one in replicas if name in one["leads"]]
        if leading:
            return [leading[0], *(url for url in urls if url != leading[0])]
        time.sleep(0.05)


def _print_row(what: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    shown = [statistics.median(ordered), ordered[math.ceil(0.99 * (len(ordered) - 1))], ordered[-1]]
    print(f"| {what} | " + " | ".join(f"{1e3 * one:,.0f} ms" for one in shown) + " |", flush=True)
