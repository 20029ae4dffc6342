"""A fleet whose parts are killed, stopped, cut off and filled while clients use it.

FLEET_FAULTS says how often, 75 by default: some ten minutes. In the end `tests.hard.fleet_check`
reads the log and all answers.

Of pauses and partitions at chosen moments there are half as many, in some six minutes. There
`tests.hard.fleet_ledger` compares recorded logs with all answers, without code of the product.
"""

import os
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from tests.hard import fleet_check, fleet_ledger
from tests.hard.conftest import Report
from tests.hard.fleet_callers import Callers
from tests.hard.fleet_clients import PROBE, Clients
from tests.hard.fleet_faults import Faults, Parts, found, stopped
from tests.hard.fleet_ledger import Ledger, name_writers
from tests.hard.fleet_pauses import CabledParts, Pauses
from tests.hard.fleet_recorder import Recorder
from tests.hard.fleet_restored import reached, restored_alike, rows_of, verified
from tests.service.nats import MISSING
from tests.service.specs import PAPERS
from tests.simulation.log_reader import Log, logs
from wolfstream.service.fleet.opening import connect, open_fleet

pytestmark = [
    pytest.mark.hard,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]

SEED = int(os.environ.get("HARD_SEED", "20260101"))
FAULTS = int(os.environ.get("FLEET_FAULTS", "75"))
MODELS = ["first", "second", "a..third"]
SPEC = PAPERS | {"working_set": {"max_size": 300}, "asset": None}
OTHER = PAPERS | {"working_set": {"max_size": 100, "C": 3.0}, "asset": None}
CHALLENGERS = {"first-b": "first", "b..third": "a..third"}
# Of the campaign of pauses: the one that is rolled back, and one that only bursts are sent to.
UNDONE, STILL = "undone", "still"
SMALL = PAPERS | {"working_set": {"max_size": 60}, "asset": None}
PAUSED_CHALLENGERS = {"first-b": "first"}
PAUSED: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("first", "second", UNDONE, STILL), SMALL),
    "first-b": SMALL | {"follows": "first", "seed": 7},
}


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    fleet = Parts(tmp_path, 3)
    try:
        fleet.start()
        fleet.keep_logs()
        yield fleet
    finally:
        fleet.close()


def test_a_fleet_keeps_its_word(parts: Parts, tmp_path: Path, report: Report) -> None:
    specs = dict.fromkeys(MODELS, SPEC)
    specs |= {model: OTHER | {"follows": champion} for model, champion in CHALLENGERS.items()}
    for number, (model, spec) in enumerate(specs.items()):
        url = f"{parts.urls[number % len(parts.urls)]}/v1/models/{model}"
        found(lambda to=url, body=spec: httpx.put(to, json=body, timeout=30).is_success)  # type: ignore[misc]
    clients = Clients(parts.urls, MODELS, CHALLENGERS, SEED)
    faults = Faults(parts, MODELS, Random(SEED))
    began = time.monotonic()
    clients.begin()
    try:
        faults.happen(FAULTS)
        time.sleep(10)
    finally:
        clients.end()
    longest = clients.longest
    findings = fleet_check.check(parts.nats.addresses, tmp_path, clients)
    report(
        seconds=round(time.monotonic() - began),
        killed=faults.kills,
        **faults.counts,
        **findings.figures,
        promotions_acknowledged=len(clients.promoted),
        requests_repeated=clients.repeated,
        longest_seconds=round(longest.seconds, 1),
        longest_while=faults.between(longest.began, longest.began + longest.seconds),
        longest_refused=longest.refused,
        statuses=dict(clients.statuses),
    )
    assert clients.failures == []
    assert findings.faults == []
    assert findings.figures["samples acknowledged"] > 100
    assert clients.promoted


def test_replaced_leaders_write_nothing(tmp_path: Path, report: Report) -> None:
    """Leaders are stopped or cut off with work on its way, replaced, and go on."""
    parts = CabledParts(tmp_path, 3, snapshot_samples=400)
    ledger = Ledger()
    with ExitStack() as stack:
        stack.callback(parts.close)
        parts.start()
        for model, spec in PAUSED.items():
            url = f"{parts.addresses[0]}/v1/models/{model}"
            found(lambda to=url, body=spec: httpx.put(to, json=body, timeout=30).is_success)  # type: ignore[misc]
        makers = {model: parts.addresses[leader] for model, leader in parts.leads([0]).items()}
        recorder = Recorder(parts.nats.addresses)
        stack.callback(recorder.close)
        learned = [model for model in PAUSED if model not in PAUSED_CHALLENGERS and model != STILL]
        callers = Callers(ledger, parts.addresses, learned, PAUSED_CHALLENGERS, UNDONE, SEED)
        pauses = Pauses(
            parts, callers, recorder, [*learned, STILL], UNDONE, PAUSED_CHALLENGERS, Random(SEED)
        )
        began = time.monotonic()
        callers.begin()
        try:
            pauses.happen(FAULTS // 2)
        except Exception:  # what the logs have may tell why
            ledger.contradictions.append(f"the campaign ended early: {traceback.format_exc()}")
        finally:
            callers.end()
            pauses.finish()
        faults, recorded = _compared(parts, recorder, ledger, makers)
        report(
            seconds=round(time.monotonic() - began),
            **pauses.totals,
            **pauses.counts,
            **callers.counts,
            **ledger.figures,
            **rows_of(recorded.values()),
        )
        ends = {name: reached(log) for name, log in recorded.items()}
        ends |= {below: ends[above] for below, above in PAUSED_CHALLENGERS.items()}
        faults += verified(parts)
        faults += restored_alike(parts, {model: ends[model] for model in PAUSED})
    assert not faults, "\n\n".join([*faults, "what happened:", *pauses.happened])


def _compared(
    parts: CabledParts, recorder: Recorder, ledger: Ledger, makers: Mapping[str, str]
) -> tuple[list[str], dict[str, Log]]:
    """Return what the logs and the answers contradict, and the logs of all models."""
    faults = recorder.finish()
    recorded = logs(recorder.archive)
    names = {number: name for name, number in recorder.numbers().items()}
    printed = {
        address: one.log() for address, one in zip(parts.addresses, parts.replicas, strict=True)
    }
    name_writers(recorded.values(), names, printed, makers)
    faults = (
        [*ledger.contradictions, *faults] if faults else fleet_ledger.check(recorded, names, ledger)
    )
    return faults, {names[number]: log for number, log in recorded.items()}


def test_a_replica_that_was_away_for_long_goes_on_from_a_snapshot(tmp_path: Path) -> None:
    """What it would read next is purged meanwhile."""
    parts = Parts(tmp_path, 1, snapshot_samples=100)
    try:
        parts.start()
        url = f"{parts.addresses[0]}/v1/models/first"
        found(lambda: httpx.put(url, json=SPEC).is_success)
        assert _learned(url, 0) == 1
        leader, away = (
            found(lambda: parts.leader("first")),
            found(lambda: parts.standby("first", 1)),
        )
        url = f"{leader.settings['advertise']}/v1/models/first"
        with stopped(away):
            last = max(_learned(url, number) for number in range(1, 500))
            found(lambda: _begin_of_log(parts, tmp_path) > 1)
        found(lambda: parts.standby("first", last) is away)
        before = httpx.post(f"{url}/predict", json={"x": PROBE}, timeout=30).json()
        leader.kill()
        url = f"{away.settings['advertise']}/v1/models/first"
        asked = {"min_sequence": f"{before['epoch']}:{last}"}
        after = found(lambda: _answer(f"{url}/predict", {"x": PROBE}, asked))
        assert after["decision"] == before["decision"]
        assert found(lambda: _answer(f"{url}/samples", _body(last)))["sequence"] == last + 1
    finally:
        parts.close()


def _body(number: int) -> dict[str, Any]:
    return {"x": [[number / 1024, number % 8, number % 3]], "y": [number % 2]}


def _learned(url: str, number: int) -> int:
    answer = httpx.post(f"{url}/samples", json=_body(number), timeout=30)
    assert answer.is_success, answer.text
    sequence: int = answer.json()["sequence"]
    return sequence


def _answer(url: str, body: dict[str, Any], query: dict[str, str] | None = None) -> Any:
    answer = httpx.post(url, json=body, params=query, timeout=30)
    return answer.json() if answer.is_success else None


def _begin_of_log(parts: Parts, folder: Path) -> int:
    """Return the sequence after which the log of the model goes on."""
    fleet = open_fleet(connect(parts.nats.addresses, 1 << 30, 1 << 30), folder)
    try:
        (model,) = fleet.storage.catalogue.models()
        return fleet.storage.journal.reader(model.number).begin() or 0
    finally:
        fleet.storage.close()
