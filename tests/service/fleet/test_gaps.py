"""A log that lacks a message: its model answers why, until it is rolled back or deleted."""

import shutil
import uuid
from collections.abc import Callable
from contextlib import closing
from typing import TypeAlias

import httpx
import pytest

from tests.service.fleet.conftest import LoneReplica, Replica
from tests.service.fleet.trio import wait_for
from tests.service.nats import NatsServers
from tests.service.specs import PAPERS
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.streams import log_location

# Lets a model learn, harms the log of the model with this number; returns replica and address.
Damaged: TypeAlias = Callable[[Callable[[int], None]], tuple[Replica, str]]
BODY = {"x": [[1, 2], [2, 1]], "y": [0, 1]}


def delete_message(servers: NatsServers, model: int, back: int) -> None:
    """Delete a message of a model's log, as a damaged disk does.

    back: how many messages before the last one; all models of the stream count.
    """
    stream, subject = log_location(model)
    with closing(NatsConnection(servers.addresses, "test")) as nats:
        last = nats.run(nats.last_of_leader(stream, subject), 10)
        assert last is not None
        nats.run(nats.call(f"STREAM.MSG.DELETE.{stream}", {"seq": last.sequence - back}), 10)


def change_message(servers: NatsServers, model: int) -> None:
    """Store a message that is not what a replica wrote at the end of a model's log."""
    _, subject = log_location(model)
    with closing(NatsConnection(servers.addresses, "test")) as nats:
        last = nats.run(nats.last_of_leader(*log_location(model)), 10)
        assert last is not None
        changed = bytes([*last.body[:-9], last.body[-9] ^ 1, *last.body[-8:]])
        nats.run(nats.ask(subject, changed), 10)


def start_without_its_directory(running: Replica) -> None:
    """Start a replica that has to read all logs."""
    running.kill()
    shutil.rmtree(running.data)
    running.start()


@pytest.fixture
def damaged(replica: Callable[..., Replica]) -> Damaged:
    """Returns a replica whose model has a snapshot at 4 and samples up to 8 in a damaged log."""
    running = replica(LoneReplica)
    running.wait()

    def damage(harm: Callable[[int], None]) -> tuple[Replica, str]:
        url = f"{running.url}/v1/models/m-{uuid.uuid4().hex[:8]}"
        wait_for(lambda: httpx.put(url, json=PAPERS, timeout=30).is_success)
        for number in range(4):
            answer = httpx.post(f"{url}/samples", json=BODY, timeout=30).raise_for_status()
            if number == 1:
                httpx.post(f"{url}/snapshot", timeout=30).raise_for_status()
        assert answer.json()["sequence"] == 8
        leads = httpx.get(f"{running.url}/v1/fleet", timeout=30).json()["replicas"][0]["leads"]
        running.kill()
        harm(leads[url.rpartition("/")[2]]["number"])
        shutil.rmtree(running.data)
        running.start()
        return running, url

    return damage


@pytest.fixture(params=["missing", "changed"])
def broken(
    request: pytest.FixtureRequest,
    servers: NatsServers,
    damaged: Damaged,
) -> tuple[Replica, str]:
    """A replica, and the address of its model, whose log lacks a message or has a changed one."""
    if request.param == "missing":
        return damaged(lambda model: delete_message(servers, model, 1))
    return damaged(lambda model: change_message(servers, model))


def test_refusal_says_what_is_missing(servers: NatsServers, damaged: Damaged):
    _, url = damaged(lambda model: delete_message(servers, model, 1))
    for call in ("predict", "samples"):
        answer = httpx.post(
            f"{url}/{call}", json=BODY if call == "samples" else {"x": BODY["x"]}, timeout=30
        )
        assert answer.status_code == 503
        assert "has a gap: message" in answer.json()["detail"]


def test_description_says_what_to_do(broken: tuple[Replica, str]):
    _, url = broken
    described = httpx.get(url, timeout=30).raise_for_status().json()
    assert described["status"] == "broken"
    assert "until you roll it back to a snapshot or delete it" in described["notice"]


def test_can_be_deleted(broken: tuple[Replica, str]):
    running, url = broken
    httpx.delete(url, timeout=30).raise_for_status()
    assert httpx.get(url, timeout=30).status_code == 404
    start_without_its_directory(running)
    assert httpx.get(url, timeout=30).status_code == 404


def test_learns_on_after_a_rollback(broken: tuple[Replica, str]):
    running, url = broken
    (snapshot,) = httpx.get(f"{url}/history", timeout=30).raise_for_status().json()["snapshots"]
    assert snapshot["sequence"] == 4
    rolled_back = httpx.post(f"{url}/rollback", json={"sequence": 4}, timeout=30)
    rolled_back.raise_for_status()
    assert rolled_back.json()["status"] == "ok"
    at = rolled_back.json()["sequence"]
    learned = httpx.post(f"{url}/samples", json=BODY, timeout=30).raise_for_status()
    assert learned.json()["sequence"] == at + 2
    decisions = httpx.post(f"{url}/predict", json={"x": BODY["x"]}, timeout=30).json()["decision"]
    start_without_its_directory(running)
    again = httpx.post(f"{url}/predict", json={"x": BODY["x"]}, timeout=30)
    assert again.raise_for_status().json()["sequence"] == at + 2
    assert again.json()["decision"] == decisions
    httpx.post(f"{url}/samples", json=BODY, timeout=30).raise_for_status()
