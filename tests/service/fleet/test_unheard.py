"""Replicas that reach the streams but do not hear each other, as where their servers are cut off.

A NATS server passes announcements on only once, so two servers that are cut off from each other
share none, though both reach a third one that leads the streams.
"""

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.fleet.conftest import Replica
from tests.service.fleet.trio import wait_for
from tests.service.nats import NatsServers
from tests.service.specs import PAPERS

MAX_LAG_SECONDS = 1.0
BODY = {"x": [[1, 2], [2, 1]], "y": [0, 1]}


def announce_elsewhere() -> None:
    """Let a replica announce itself where the others do not listen, and listen there."""
    from wolfstream.service.cluster import members

    members._SUBJECT = "wolfstream.replicas.elsewhere"


class UnheardReplica(Replica):
    """A replica that neither hears the others nor is heard by them."""

    def __init__(self, data: Path, servers: NatsServers, **settings: object) -> None:
        super().__init__(data, servers, **settings)
        self.prelude = announce_elsewhere


def ask(replica: Replica, call: str, body: object, method: str = "POST") -> httpx.Response:
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    return httpx.request(method, f"{replica.url}/v1/models/{call}", json=body, headers=headers)


def asked(replica: Replica, call: str, body: object, method: str = "POST") -> Any:
    """Return the answer to a call, made again while it is refused."""

    def answer() -> Any:
        found = ask(replica, call, body, method)
        return found.json() if found.is_success else None

    return wait_for(answer)


@pytest.fixture
def divided(replica: Callable[..., Replica]) -> Callable[..., list[Replica]]:
    """Starts replicas, the last of which neither hears the others nor is heard by them."""

    def start(n: int, **settings: object) -> list[Replica]:
        kinds = [Replica] * (n - 1) + [UnheardReplica]
        running = [replica(kind, max_lag_seconds=MAX_LAG_SECONDS, **settings) for kind in kinds]
        for one in running:
            one.wait()
        return running

    return start


def predicts_nothing_old(one: Replica, model: str, sequence: int) -> None:
    """Ask a replica for some time for predictions; those that it makes have all samples."""
    deadline = time.monotonic() + 2 * MAX_LAG_SECONDS
    while time.monotonic() < deadline:
        answer = ask(one, f"{model}/predict", {"x": BODY["x"]})
        assert answer.status_code in (200, 503), answer.text
        if answer.is_success:
            assert answer.json()["sequence"] >= sequence
        time.sleep(0.2)


@pytest.mark.parametrize("settings", [{}, {"workers": 1}])
def test_replaced_leader_predicts_nothing_old(
    divided: Callable[..., list[Replica]], settings: dict[str, Any]
):
    here, there = divided(2, **settings)
    name = f"m-{uuid.uuid4().hex[:8]}"
    asked(here, name, PAPERS, "PUT")
    assert asked(here, f"{name}/samples", BODY)["sequence"] == 2
    assert asked(here, f"{name}/predict", {"x": BODY["x"]})["sequence"] == 2
    assert asked(there, f"{name}/samples", BODY)["sequence"] == 4
    time.sleep(MAX_LAG_SECONDS)
    predicts_nothing_old(here, name, 4)


def test_views_of_replaced_leader_predict_nothing_old(divided: Callable[..., list[Replica]]):
    """One of two replicas that hear each other leads the model, and the other follows its view."""
    *here, there = divided(3)
    name = f"m-{uuid.uuid4().hex[:8]}"
    asked(here[0], name, PAPERS, "PUT")
    assert asked(here[0], f"{name}/samples", BODY)["sequence"] == 2

    def is_followed() -> bool:
        for one in here:
            assert asked(one, f"{name}/predict", {"x": BODY["x"]})["sequence"] == 2
        return any(name in httpx.get(f"{one.url}/v1/fleet").json()["views"] for one in here)

    wait_for(is_followed)
    assert asked(there, f"{name}/samples", BODY)["sequence"] == 4
    time.sleep(MAX_LAG_SECONDS)
    for one in here:
        predicts_nothing_old(one, name, 4)
