"""A log that lacks a message: nobody leads its model, and each answer says why."""

import shutil
import uuid
from collections.abc import Callable
from contextlib import closing

import httpx

from tests.service.fleet.conftest import LoneReplica, Replica
from tests.service.fleet.trio import wait_for
from tests.service.nats import NatsServers
from tests.service.specs import PAPERS
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.streams import log_location

BODY = {"x": [[1, 2], [2, 1]], "y": [0, 1]}


def without_message_before_the_last(servers: NatsServers, model: int) -> None:
    """Delete a message from the middle of a model's log, as a damaged disk does."""
    stream, subject = log_location(model)
    with closing(NatsConnection(servers.addresses, "test")) as nats:
        last = nats.run(nats.last_of_leader(stream, subject), 10)
        assert last is not None
        request = {"seq": last.sequence - 1}
        nats.run(nats.call(f"STREAM.MSG.DELETE.{stream}", request), 10)


def test_refusal_says_what_is_missing(servers: NatsServers, replica: Callable[..., Replica]):
    running = replica(LoneReplica)
    running.wait()
    url = f"{running.url}/v1/models/m-{uuid.uuid4().hex[:8]}"
    wait_for(lambda: httpx.put(url, json=PAPERS, timeout=30).is_success)
    for _ in range(4):
        httpx.post(f"{url}/samples", json=BODY, timeout=30).raise_for_status()
    name = url.rpartition("/")[2]
    leads = httpx.get(f"{running.url}/v1/fleet", timeout=30).json()["replicas"][0]["leads"]
    running.kill()
    without_message_before_the_last(servers, leads[name]["number"])
    shutil.rmtree(running.data)
    running.start()
    for call in ("predict", "samples"):
        answer = httpx.post(
            f"{url}/{call}", json=BODY if call == "samples" else {"x": BODY["x"]}, timeout=30
        )
        assert answer.status_code == 503
        assert "has a gap: message" in answer.json()["detail"]
