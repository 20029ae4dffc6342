"""A fleet whose replicas and servers of NATS are killed and stopped while clients use it.

FLEET_FAULTS says how often, 50 by default. In the end `tests.hard.fleet_check` reads the log and
all answers.
"""

import itertools
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import httpx
import pytest

from tests.hard.conftest import Report
from tests.hard.fleet_check import Read, Sent, check
from tests.service.fleet.conftest import Replica
from tests.service.nats import MISSING, NatsServers
from tests.service.specs import PAPERS

pytestmark = [
    pytest.mark.hard,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]

SEED = int(os.environ.get("HARD_SEED", "20260101"))
FAULTS = int(os.environ.get("FLEET_FAULTS", "50"))
MODELS = ["first", "second", "a..third"]
PROBE = [[0.5, float(i), float(i % 3)] for i in range(8)]
SPEC = PAPERS | {"working_set": {"max_size": 300}, "asset": None}
_PATIENCE_SECONDS = 120.0


class Clients:
    """Threads that learn and predict through any replica, and keep what they were answered."""

    def __init__(self, urls: list[str]) -> None:
        self.sent, self.read = list[Sent](), list[Read]()
        self.statuses = Counter[int]()
        self.longest = 0.0
        self.failures = list[str]()
        self._urls = urls
        self._numbers = itertools.count(1)
        self._ended = threading.Event()
        jobs = [(self._learn, model, n) for model in MODELS for n in range(2)]
        jobs += [(self._predict, model, 9) for model in MODELS]
        self._threads = [threading.Thread(target=self._guarded, args=job) for job in jobs]

    def begin(self) -> None:
        """Start all."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let each finish its request, and wait for them."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, job: Callable[[str, Random], None], model: str, number: int) -> None:
        try:
            job(model, Random(f"{SEED} {model} {number}"))
        except Exception as error:
            self.failures.append(f"{model}: {error!r}")

    def _learn(self, model: str, random: Random) -> None:
        while not self._ended.is_set():
            n = random.choice([1, 5, 40])
            samples = tuple(next(self._numbers) / 1024 for _ in range(n))
            key = f"key-{samples[0]}" if random.random() < 0.5 else None
            rows = [[x, random.randrange(8), random.randrange(3)] for x in samples]
            body = {"x": rows, "y": [int(row[1] + row[2]) % 2 for row in rows]}
            began = time.monotonic()
            answer = self._send(model, "samples", body, key, random)
            self.longest = max(self.longest, time.monotonic() - began)
            told = answer.json() if answer is not None else {}
            self.sent.append(Sent(model, key, samples, told.get("sequence"), told.get("epoch")))

    def _send(
        self, model: str, call: str, body: object, key: str | None, random: Random
    ) -> httpx.Response | None:
        """The answer of 200; with a key it is asked for until it comes."""
        deadline, told = time.monotonic() + _PATIENCE_SECONDS, list[str]()
        headers = {} if key is None else {"Idempotency-Key": key}
        while time.monotonic() < deadline:
            url = f"{random.choice(self._urls)}/v1/models/{model}/{call}"
            try:
                answer = httpx.post(url, json=body, headers=headers, timeout=30)
            except httpx.TransportError as error:
                self.statuses[0] += 1
                told.append(f"{url}: {error!r}")
                if key is None and not isinstance(error, httpx.ConnectError):
                    return None
            else:
                self.statuses[answer.status_code] += 1
                if answer.status_code == 200:
                    return answer
                assert answer.status_code == 503, answer.text
                told.append(f"{url}: {answer.json()['detail']}")
                if key is None and answer.json()["type"] == "urn:wolfstream:in-doubt":
                    return None
            time.sleep(0.05)
        raise TimeoutError(f"no answer within {_PATIENCE_SECONDS} s: {told[-5:]}")

    def _predict(self, model: str, random: Random) -> None:
        while not self._ended.is_set():
            try:
                url = f"{random.choice(self._urls)}/v1/models/{model}/predict"
                answer = httpx.post(url, json={"x": PROBE}, timeout=30)
            except httpx.TransportError:
                continue
            if answer.status_code == 200:
                told = answer.json()
                self.read.append(Read(model, told["sequence"], told["epoch"], told["decision"]))
            time.sleep(0.02)


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[NatsServers]:
    servers = NatsServers(tmp_path / "nats", 3, sync=True).start()
    yield servers
    servers.close()


@pytest.fixture
def replicas(nats: NatsServers, tmp_path: Path) -> Iterator[list[Replica]]:
    # No snapshot comes by itself: the log is whole in the end.
    trio = [Replica(tmp_path / f"replica-{number}", nats) for number in range(3)]
    for one in trio:
        one.launch()
    for one in trio:
        one.wait()
    yield trio
    for one in trio:
        one.close()


def fault(random: Random, nats: NatsServers, replicas: list[Replica]) -> str:
    """Let something fail for a while; what it was."""
    kind = random.choices(
        ["replica", "replica stopped", "replica ended", "nats", "all of nats"], [8, 3, 3, 5, 1]
    )[0]
    one, server = random.choice(replicas), random.randrange(3)
    pause = random.uniform(0.5, 4.0)
    if kind == "replica":
        one.kill()
        time.sleep(pause)
        one.launch()
        one.wait()
    elif kind == "replica stopped":
        one.send_signal(signal.SIGSTOP)
        time.sleep(2 + pause)
        one.send_signal(signal.SIGCONT)
    elif kind == "replica ended":
        assert one.terminate() == 0
        one.launch()
        one.wait()
    else:
        servers = range(3) if kind == "all of nats" else [server]
        for number in servers:
            nats.kill(number)
        time.sleep(pause)
        for number in servers:
            nats.start_one(number)
    time.sleep(random.uniform(0.5, 3.0))
    return kind


def test_a_fleet_keeps_its_word(
    nats: NatsServers, replicas: list[Replica], tmp_path: Path, report: Report
) -> None:
    urls = [one.url for one in replicas]
    for model in MODELS:
        deadline = time.monotonic() + 30
        while httpx.put(f"{urls[0]}/v1/models/{model}", json=SPEC).status_code != 201:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    clients, random = Clients(urls), Random(SEED)
    clients.begin()
    try:
        faults = Counter(fault(random, nats, replicas) for _ in range(FAULTS))
        time.sleep(10)
    finally:
        clients.end()
    found = check(nats.addresses, tmp_path, clients.sent, clients.read, PROBE)
    report(
        **{kind.replace(" ", "_"): n for kind, n in faults.items()},
        **{what.replace(" ", "_"): n for what, n in found.figures.items()},
        longest_seconds=round(clients.longest, 1),
        statuses=dict(clients.statuses),
    )
    assert clients.failures == []
    assert found.faults == []
    assert found.figures["samples_acknowledged".replace("_", " ")] > 100
