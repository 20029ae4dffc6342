"""A fleet whose parts are killed, stopped, cut off and filled while clients use it.

FLEET_FAULTS says how often, 75 by default: some ten minutes. In the end `tests.hard.fleet_check`
reads the log and all answers.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import httpx
import pytest

from tests.hard.conftest import Report
from tests.hard.fleet_check import check
from tests.hard.fleet_clients import PROBE, Clients
from tests.hard.fleet_faults import Faults, Parts
from tests.service.nats import MISSING
from tests.service.specs import PAPERS

pytestmark = [
    pytest.mark.hard,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]

SEED = int(os.environ.get("HARD_SEED", "20260101"))
FAULTS = int(os.environ.get("FLEET_FAULTS", "75"))
MODELS = ["first", "second", "a..third"]
SPEC = PAPERS | {"working_set": {"max_size": 300}, "asset": None}


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    # No snapshot comes by itself: the log is whole in the end.
    fleet = Parts(tmp_path, 3)
    try:
        yield fleet.start()
    finally:
        fleet.close()


def test_a_fleet_keeps_its_word(parts: Parts, tmp_path: Path, report: Report) -> None:
    for model in MODELS:
        deadline = time.monotonic() + 30
        url = f"{parts.urls[0]}/v1/models/{model}"
        while httpx.put(url, json=SPEC).status_code not in (200, 201):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    clients = Clients(parts.urls, MODELS, SEED)
    faults = Faults(parts, MODELS, Random(SEED))
    began = time.monotonic()
    clients.begin()
    try:
        faults.happen(FAULTS)
        time.sleep(10)
    finally:
        clients.end()
    found = check(parts.nats.addresses, tmp_path, clients.sent, clients.read, PROBE)
    report(
        seconds=round(time.monotonic() - began),
        killed=faults.kills,
        **faults.counts,
        **found.figures,
        longest_seconds=round(clients.longest, 1),
        statuses=dict(clients.statuses),
    )
    assert clients.failures == []
    assert found.faults == []
    assert found.figures["samples acknowledged"] > 100
