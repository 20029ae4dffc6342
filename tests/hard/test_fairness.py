"""One tenant keeps a server as busy as its limits allow; another one's single rows are learned.

Each campaign prints how long these took, from the request to the acknowledgement.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import msgpack
import numpy as np
import pytest

from tests.hard.conftest import Report
from tests.service.process import CommandProcess

pytestmark = [pytest.mark.hard, pytest.mark.timeout(900)]

SECONDS = 30.0
# What another tenant may wait for a single row.
MOST_P99, MOST = 0.3, 1.0
MSGPACK = {"Content-Type": "application/vnd.msgpack"}
Tenant = Callable[[httpx.Client, Callable[[], bool]], None]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CommandProcess]:
    with closing(CommandProcess(tmp_path / "data")) as running:
        yield running.start()


def rows(n: int, width: int, classes: int, seed: int) -> bytes:
    """Return the body of n rows of so many numbers, about half of which tell their class."""
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, n)
    centres = np.random.default_rng(0).normal(size=(classes, width))
    X = (centres[y] * (random.random((n, 1)) < 0.5) + random.normal(size=(n, width))).astype("<f4")
    packed = {"dtype": "<f4", "shape": list(X.shape), "data": X.tobytes()}
    body: bytes = msgpack.packb({"x": packed, "y": y.tolist()})
    return body


def put(client: httpx.Client, name: str, spec: Any) -> None:
    client.put(f"/v1/models/{name}", json=spec).raise_for_status()


def offer(client: httpx.Client, name: str, body: bytes) -> httpx.Response:
    return client.post(f"/v1/models/{name}/samples", content=body, headers=MSGPACK)


def learn(client: httpx.Client, name: str, body: bytes) -> None:
    """Send samples of the busy tenant, whose share of the queue may be taken."""
    answer = offer(client, name, body)
    if answer.status_code != 503:
        answer.raise_for_status()


def keep_learning(spec: Any, n: int, width: int, classes: int) -> Tenant:
    """Return a tenant that sends requests of n rows to one model."""

    def run(client: httpx.Client, goes_on: Callable[[], bool]) -> None:
        put(client, "heavy", spec)
        bodies = cycle([rows(n, width, classes, seed) for seed in range(3)])
        while goes_on():
            learn(client, "heavy", next(bodies))

    return run


def with_large_set(then: Callable[[httpx.Client], Any], spec: Any, n: int = 6_500) -> Tenant:
    """Return a tenant that does something again and again with a model that has a large set."""

    def run(client: httpx.Client, goes_on: Callable[[], bool]) -> None:
        put(client, "heavy", spec)
        for seed in range(n // 500):
            learn(client, "heavy", rows(500, 50, 2, seed))
        while goes_on():
            then(client)
            learn(client, "heavy", rows(20, 50, 2, int(time.monotonic() * 1e3)))

    return run


def refit(client: httpx.Client) -> None:
    answer = client.post("/v1/models/heavy/refit")
    answer.raise_for_status()
    place = answer.headers["Location"]
    while client.get(place).json()["status"] in ("queued", "running"):
        time.sleep(0.1)


def snapshot(client: httpx.Client) -> None:
    client.post("/v1/models/heavy/snapshot").raise_for_status()


def promote(client: httpx.Client) -> None:
    put(client, "challenger", {**LARGE_SET, "follows": "heavy", "start": "state"})
    sequence = client.get("/v1/models/heavy").json()["sequence"]
    while client.get("/v1/models/challenger").json()["sequence"] < sequence:
        time.sleep(0.1)
    answer = client.post("/v1/models/heavy/promote", json={"model": "challenger"})
    answer.raise_for_status()
    client.delete("/v1/models/challenger").raise_for_status()


def challengers(client: httpx.Client, goes_on: Callable[[], bool]) -> None:
    put(client, "heavy", {})
    for k in range(3):
        put(client, f"challenger-{k}", {**LARGE_SET, "seed": k, "follows": "heavy"})
    while goes_on():
        learn(client, "heavy", rows(500, 100, 10, int(time.monotonic() * 1e3)))


LARGE_SET = {"adaptive": None, "asset": None, "serve": "working_set"}
LARGE_SET["working_set"] = {"max_size": 10_000, "horizon": None}  # type: ignore[assignment]
MANY_STEPS = {**LARGE_SET, "working_set": {"max_size": 20_000, "corrective_steps": 100}}
REFITTED = {"task": "regression", "asset": None, "adaptive": None, "working_set": None}
REFITTED |= {"semiparametric": {"window": 5_000}, "serve": "semiparametric"}
TENANTS: dict[str, Tenant] = {
    "wide rows": keep_learning({}, 1_000, 2_040, 100),
    "many classes": keep_learning({}, 1_000, 20, 100),
    "corrective steps": keep_learning(MANY_STEPS, 1_000, 50, 10),
    "width search": keep_learning({"adaptive": None, "serve": "working_set"}, 500, 2_040, 2),
    "refits": with_large_set(refit, REFITTED),
    "challengers": challengers,
    "snapshots": with_large_set(snapshot, LARGE_SET),
    "promotion": with_large_set(promote, LARGE_SET),
}


@pytest.mark.parametrize("name", TENANTS)
def test_single_rows_beside_a_tenant(server: CommandProcess, report: Report, name: str) -> None:
    failures, ends = list[Exception](), time.monotonic() + 900.0
    with (
        httpx.Client(base_url=server.url, timeout=300) as theirs,
        httpx.Client(base_url=server.url, timeout=60) as own,
    ):
        put(own, "light", {})
        bodies = [rows(1, 20, 3, seed) for seed in range(500)]
        for body in bodies:
            offer(own, "light", body).raise_for_status()

        def tenant() -> None:
            try:
                TENANTS[name](theirs, lambda: time.monotonic() < ends)
            except Exception as error:
                failures.append(error)

        running = threading.Thread(target=tenant)
        running.start()
        ends = time.monotonic() + SECONDS
        took = list[float]()
        while time.monotonic() < ends and not failures:
            began = time.monotonic()
            offer(own, "light", bodies[len(took) % len(bodies)]).raise_for_status()
            took.append(time.monotonic() - began)
            time.sleep(0.01)
        running.join()
    p50, p99, worst = np.quantile(took, [0.5, 0.99, 1.0])
    report(rows=len(took), p50_p99_worst_ms=[round(1e3 * float(t), 1) for t in (p50, p99, worst)])
    assert not failures, failures
    assert p99 < MOST_P99, server.log()
    assert worst < MOST, server.log()
