"""A full log of a fleet: the model continues once a snapshot replaces what it has learned."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.service.fleet.conftest import LoneReplica, Replica
from tests.service.fleet.test_one_replica import call
from tests.service.fleet.trio import wait_for
from tests.service.nats import MISSING, NatsServers
from tests.service.specs import PAPERS

SPEC = PAPERS | {"working_set": {"max_size": 50}, "asset": None}
# A stream of the logs takes a megabyte, so some twenty of these.
X = np.random.default_rng(0).normal(size=(300, 20))
BODY = {"x": X.tolist(), "y": (X[:, 0] > 0).astype(int).tolist()}


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    if MISSING:
        pytest.skip(MISSING)
    servers = NatsServers(tmp_path / "nats").start()
    one = LoneReplica(tmp_path / "data", servers, fleet_log_bytes=8 << 20)
    yield one.start()
    one.close()
    servers.close()


def test_takes_samples_again_and_is_brought_back_from_its_snapshot(replica: Replica):
    url = f"{replica.url}/v1/models/m"
    call(url, "PUT", json=SPEC)

    def learn() -> httpx.Response:
        return httpx.post(f"{url}/samples", json=BODY, timeout=60)

    wait_for(lambda: "is full" in learn().text)
    wait_for(lambda: learn().is_success)
    before = call(f"{url}/predict", json={"x": X[:9].tolist()})
    replica.kill()
    shutil.rmtree(replica.data)
    replica.start()
    after = call(f"{url}/predict", json={"x": X[:9].tolist()})
    assert (after["decision"], after["sequence"]) == (before["decision"], before["sequence"])
