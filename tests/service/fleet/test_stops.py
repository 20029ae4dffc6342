"""A leader that is told to stop in the middle of a request that takes long to learn."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from tests.service.fleet.conftest import Replica
from tests.service.fleet.test_replicas import wait_for
from wolfstream.service.engine import turns

SPEC = {"working_set": None, "adaptive": None, "asset": {"dimension": 8}, "serve": "asset"}
N = 30 * 1024  # learned in parts of 1,024


def _slow_parts() -> None:
    """Let each part of a large request take half a second to learn, but not to replay."""
    absorb = turns.absorb_part

    def slow(*given: Any) -> Any:
        time.sleep(0.5)
        return absorb(*given)

    turns.absorb_part = slow


def samples(n: int) -> dict[str, Any]:
    return {"x": [[float(i % 7)] for i in range(n)], "y": [int(i % 7 > 3) for i in range(n)]}


class _SlowReplica(Replica):
    def launch(self, *more: str) -> Any:
        self.prelude = _slow_parts
        return super().launch(*more)


def test_the_lead_moves_before_the_request_is_learned(replica: Callable[..., Replica]) -> None:
    """Its client is told that the samples are durable, and other models move at once."""
    leader = replica(_SlowReplica)
    leader.wait()
    for name in ("large", "small"):
        httpx.put(f"{leader.url}/v1/models/{name}", json=SPEC).raise_for_status()
    url = "{}/v1/models/{}/asset".format
    other = replica(_SlowReplica)
    other.wait()

    def leads(one: Replica) -> set[str]:
        rows = httpx.get(f"{other.url}/v1/fleet", timeout=30).json()["replicas"]
        return {name for row in rows if row["url"] == one.url for name in row["leads"]}

    wait_for(lambda: leads(leader) | leads(other) == {"large", "small"})
    if "large" not in leads(leader):  # it ranks first for another replica
        leader, other = other, leader
    with ThreadPoolExecutor() as pool, httpx.Client(timeout=60) as client:
        sending = pool.submit(client.post, url(leader.url, "large"), json=samples(N))
        time.sleep(1.5)
        began = time.monotonic()
        process = leader.process
        assert process is not None
        process.terminate()
        answer = sending.result()
        told = time.monotonic() - began
        moved = httpx.post(url(other.url, "small"), json=samples(3), timeout=60)
        assert moved.status_code == 200, moved.text
        wait_for(lambda: "large" in leads(other))
        took = time.monotonic() - began
    assert answer.status_code == 503
    problem = answer.json()
    assert (problem["type"], problem["outcome"]) == ("urn:wolfstream:not-yet-learned", "durable")
    assert told < 5.0
    assert took < 8.0
    learned = httpx.post(url(other.url, "large"), json=samples(3), timeout=60)
    assert learned.json()["sequence"] == N + 3
    assert leader.exit_code() == 0
    assert "Traceback" not in leader.log()
