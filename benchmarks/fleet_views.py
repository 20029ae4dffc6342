"""Three replicas of a fleet: the views that those follow who do not lead a model."""

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from tests.service.fleet.conftest import Replica
from tests.service.nats import NatsServers

_SPEC = {"prepare": None, "adaptive": None, "asset": None}
_SET = {"max_size": 2_000}
_BATCH, _PER_SECOND = 10, 500
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
    waited: list[float] = []
    with httpx.Client(timeout=60) as client, httpx.Client(timeout=60) as asking:
        end = time.monotonic() + seconds
        due = time.monotonic()
        number = 0
        while time.monotonic() < end:
            acknowledged = _learn(leader, _MODEL, _samples(_BATCH, number), client)
            number += 1
            began = time.monotonic()
            if number % 5 == 0:  # waiting for each would hold up the samples
                url = f"{others[number % 2]}/v1/models/{_MODEL}/predict"
                answer = asking.post(url, params={"min_sequence": acknowledged}, json=_ROWS)
                answer.raise_for_status()
                waited.append(time.monotonic() - began)
            due += _BATCH / _PER_SECOND
            time.sleep(max(0.0, due - time.monotonic()))
    _print_row(f"behind an acknowledgement, {number * _BATCH / seconds:.0f} samples/s", waited)


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
    with _predicting(others) as (waited, statuses):
        time.sleep(2.0)
        waited.clear()
        replicas[urls.index(leader)].kill()
        began = time.monotonic()
        while _leader_first(others, _MODEL)[0] == leader:
            time.sleep(0.05)
        _learn(others[0], _MODEL, _samples(_BATCH))
        taken_over = time.monotonic() - began
        time.sleep(1.0)
    refused = sum(n for status, n in statuses.items() if status != 200)
    _print_row(
        f"predictions of the others while the leader is killed ({refused} of "
        f"{sum(statuses.values())} refused; samples are taken again after {taken_over:.1f} s)",
        waited,
    )


@contextmanager
def _predicting(urls: list[str]) -> Iterator[tuple[list[float], dict[int, int]]]:
    """Predict at replicas all the time: how long each took, and the statuses."""
    waited, statuses, ended = list[float](), dict[int, int](), threading.Event()

    def predict(url: str) -> None:
        with httpx.Client(timeout=60) as client:
            while not ended.is_set():
                began = time.monotonic()
                answer = client.post(f"{url}/v1/models/{_MODEL}/predict", json=_ROWS)
                waited.append(time.monotonic() - began)
                statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
                time.sleep(0.01)

    threads = [threading.Thread(target=predict, args=(url,)) for url in urls]
    for thread in threads:
        thread.start()
    try:
        yield waited, statuses
    finally:
        ended.set()
        for thread in threads:
            thread.join()


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
    """The replicas, the model's leader first, once it is known."""
    while True:
        told = httpx.get(f"{urls[0]}/v1/fleet", timeout=60).json()["replicas"]
        leading = [one["url"] for one in told if name in one["leads"]]
        if leading:
            return [leading[0], *(url for url in urls if url != leading[0])]
        time.sleep(0.05)


def _print_row(what: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    shown = [statistics.median(ordered), ordered[int(0.99 * (len(ordered) - 1))], ordered[-1]]
    print(f"| {what} | " + " | ".join(f"{1e3 * one:,.0f} ms" for one in shown) + " |", flush=True)
