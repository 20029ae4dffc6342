"""A short campaign of faults: what clients were answered agrees with the fleet's log.

The long one is `tests.hard.test_fleet`.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from tests.service.fleet.trio import wait_for
from tests.service.nats import MISSING
from tests.service.specs import PAPERS

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from tests.hard.fleet_check import check
from tests.hard.fleet_clients import Clients
from tests.hard.fleet_faults import Faults, Parts

MODELS = ["first", "second"]
CHALLENGER = {"first-b": "first"}


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    fleet = Parts(tmp_path, 1)
    try:
        fleet.start()
        fleet.keep_logs()
        yield fleet
    finally:
        fleet.close()


def test_killed_or_cut_off_leader_loses_nothing(parts: Parts, tmp_path: Path):
    specs: dict[str, dict[str, Any]] = {
        "first": PAPERS,
        "first-b": PAPERS | {"follows": "first", "seed": 7},
        "second": {"working_set": {"max_size": 100}},
    }
    for model, spec in specs.items():
        url = f"{parts.urls[0]}/v1/models/{model}"
        wait_for(lambda at=url, of=spec: httpx.put(at, json=of).is_success)  # type: ignore[misc]
    clients = Clients(parts.urls, MODELS, CHALLENGER, 0)
    faults = Faults(parts, MODELS, Random(0), hurry=10.0)
    clients.begin()
    try:
        for kind in ("leader killed", "replica cut off"):
            faults.let(kind)
    finally:
        clients.end()
    found = check(parts.nats.addresses, tmp_path, clients)
    assert clients.failures == []
    assert found.faults == []
    assert found.figures["samples acknowledged"] > 0
