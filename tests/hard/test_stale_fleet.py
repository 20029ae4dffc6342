"""No prediction of a fleet is older than its bound, and no call waits without end."""

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.hard.conftest import Report
from tests.service.cable import Cable
from tests.service.fleet.conftest import Replica
from tests.service.fleet.trio import wait_for
from tests.service.nats import MISSING, NatsServers
from tests.service.specs import PAPERS
from wolfstream.service.recovery import replay

pytestmark = [
    pytest.mark.hard,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]

LAG_SECONDS = 3.0
# How late a replica notices that it hears nothing, on a busy machine.
LATE_SECONDS = 3.0
# A model goes to who ranks first for it once that one has its log.
_SETTLED_SECONDS = 4.0
BODY = {"x": [[1, 2], [2, 1]], "y": [0, 1]}


def replay_slowly() -> None:
    """Let a replica take as long to replay a log as if the model learned slowly."""
    replay_block: Callable[..., Any] = replay._replay_block

    def slow(*given: Any) -> Any:
        time.sleep(0.3)
        return replay_block(*given)

    replay._replay_block = slow


class Fleet:
    """Some replicas over some NATS servers."""

    def __init__(self, stack: ExitStack, folder: Path, replicas: int, servers: int) -> None:
        self._stack = stack
        self.nats = stack.enter_context(closing(NatsServers(folder / "nats", servers)))
        self.nats.start()
        self.replicas = [
            Replica(folder / str(number), self.nats, max_lag_seconds=LAG_SECONDS)
            for number in range(replicas)
        ]

    def start(self) -> None:
        for one in self.replicas:
            self._stack.callback(one.close)
            one.launch()
        for one in self.replicas:
            one.wait()
        wait_for(lambda: len(self.told(0)["replicas"]) == len(self.replicas))
        wait_for(lambda: self.ask(0, "PUT", "", json=PAPERS).is_success)

    def ask(self, number: int, method: str, call: str, **given: Any) -> httpx.Response:
        url = f"{self.replicas[number].url}/v1/models/m{call}"
        return httpx.request(method, url, timeout=60, **given)

    def told(self, number: int) -> Any:
        return httpx.get(f"{self.replicas[number].url}/v1/fleet", timeout=30).json()

    def learn(self, times: int) -> int:
        """Return the sequence that was acknowledged last."""
        sequence = 0
        for _ in range(times):
            answer = self.ask(0, "POST", "/samples", json=BODY)
            assert answer.is_success, answer.text
            sequence = answer.json()["sequence"]
        return sequence

    def predict(self, number: int) -> httpx.Response:
        return self.ask(number, "POST", "/predict", json={"x": BODY["x"]})

    def leading(self) -> int:
        """Return the number of the replica that leads the model, once that stays the same."""
        leader, since = -1, time.monotonic()
        while time.monotonic() < since + _SETTLED_SECONDS:
            now = wait_for(lambda: self.having("leads"))[0]
            if now != leader:
                leader, since = now, time.monotonic()
            time.sleep(0.1)
        return leader

    def standing_by(self) -> int:
        return wait_for(lambda: self.having("follows"))[0]

    def having(self, what: str) -> list[int]:
        """Return the numbers of the replicas that lead the model, or stand by for it."""
        urls = [one.settings["advertise"] for one in self.replicas]
        rows = self.told(0)["replicas"]
        return [urls.index(one["url"]) for one in rows if "m" in one[what]]

    def follow_everywhere(self, sequence: int) -> None:
        """Return once all replicas predict with a state."""
        for number in range(len(self.replicas)):
            wait_for(lambda of=number: self._sequence(of) >= sequence)  # type: ignore[misc]

    def _sequence(self, number: int) -> int:
        answer = self.predict(number)
        return int(answer.json()["sequence"]) if answer.is_success else -1

    def last_answer(self, survivors: list[int], seconds: float) -> tuple[float, list[str]]:
        """Ask for predictions; return when the last one was made, and why others are refused."""
        began, last, why = time.monotonic(), 0.0, dict.fromkeys(survivors, "")
        while time.monotonic() < began + seconds:
            for number in survivors:
                asked = time.monotonic() - began
                answer = self.predict(number)
                assert answer.status_code in (200, 503), answer.text
                if answer.is_success:
                    last = asked
                else:
                    why[number] = answer.json()["detail"]
            time.sleep(0.2)
        return last, list(why.values())


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Callable[[int, int], Fleet]]:
    """Makes fleets of so many replicas and NATS servers."""
    with ExitStack() as stack:
        yield lambda replicas, servers: Fleet(stack, tmp_path, replicas, servers)


def test_long_takeover_answers_nothing_old(fleet: Callable[[int, int], Fleet], report: Report):
    """The leader and who stands by are killed; the next one has all of the log to read."""
    of = fleet(4, 1)
    for one in of.replicas:
        one.prelude = replay_slowly
    of.start()
    sequence = of.learn(60)
    of.follow_everywhere(sequence)
    killed = {of.leading(), of.standing_by()}
    for number in killed:
        of.replicas[number].kill()
    survivors = [number for number in range(4) if number not in killed]
    last, why = of.last_answer(survivors, 12.0)
    report(last_old_prediction_after_seconds=round(last, 1))
    assert last < LAG_SECONDS + LATE_SECONDS
    assert any("samples of its log" in one for one in why), why
    for number in survivors:
        wait_for(lambda of_=number: of._sequence(of_) == sequence)  # type: ignore[misc]


def test_fleet_without_most_servers_answers_nothing_old(
    fleet: Callable[[int, int], Fleet], report: Report
):
    of = fleet(3, 3)
    of.start()
    of.follow_everywhere(of.learn(3))
    leader = of.leading()
    of.replicas[leader].kill()
    for number in (0, 1):
        of.nats.kill(number)
    last, why = of.last_answer([number for number in range(3) if number != leader], 15.0)
    report(last_old_prediction_after_seconds=round(last, 1))
    assert last < LAG_SECONDS + LATE_SECONDS
    assert all("most NATS servers have not been heard" in one for one in why), why


def test_stopped_leader_answers_nothing_old(fleet: Callable[[int, int], Fleet]):
    of = fleet(3, 1)
    of.start()
    of.follow_everywhere(of.learn(3))
    leader = of.leading()
    process, other = of.replicas[leader].process, (leader + 1) % 3
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    key = {"Idempotency-Key": "k"}
    answer = wait_for(
        lambda: (
            (one := of.ask(other, "POST", "/samples", json=BODY, headers=key)).is_success and one
        )
    )
    time.sleep(LAG_SECONDS)
    process.send_signal(signal.SIGCONT)
    for _ in range(200):
        answered = of.predict(leader)
        if answered.is_success:
            assert answered.json()["sequence"] >= answer.json()["sequence"]
    wait_for(lambda: of.predict(leader).is_success)


def test_sequences_over_a_connection_never_go_back(
    fleet: Callable[[int, int], Fleet], report: Report
):
    """Each replica predicts over one connection, while leaders are killed, stopped and replaced."""
    of = fleet(3, 1)
    of.start()
    of.follow_everywhere(of.learn(3))
    done, seen = threading.Event(), dict[str, list[int]]()

    def predict(number: int) -> None:
        """Until the replica ends; then over another connection."""
        while not done.is_set():
            sequences = seen.setdefault(f"{number}: {time.monotonic()}", [])
            url = of.replicas[number].url
            with suppress(httpx.TransportError), httpx.Client(base_url=url, timeout=60) as client:
                while not done.is_set():
                    answer = client.post("/v1/models/m/predict", json={"x": BODY["x"]})
                    if answer.is_success:
                        sequences.append(answer.json()["sequence"])
                    time.sleep(0.01)
            time.sleep(0.2)

    def learn() -> None:
        for k in itertools.count():
            if done.is_set():
                return
            with suppress(httpx.TransportError):
                of.ask(k % 3, "POST", "/samples", json=BODY)

    jobs = [learn, *(partial(predict, number) for number in range(3))]
    with ThreadPoolExecutor(len(jobs)) as running:
        futures = [running.submit(job) for job in jobs]
        try:
            for change in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL):
                replica = of.replicas[wait_for(lambda: of.having("leads"))[0]]
                assert replica.process is not None
                replica.process.send_signal(change)
                time.sleep(LAG_SECONDS + 4.0)
                if change == signal.SIGSTOP:
                    replica.process.send_signal(signal.SIGCONT)
                else:
                    replica.kill()
                    replica.start()
                time.sleep(4.0)
        finally:
            done.set()
        for future in futures:
            future.result()
    report(connections=len(seen), predictions=sum(map(len, seen.values())))
    for connection, sequences in seen.items():
        back = [(a, b) for a, b in itertools.pairwise(sequences) if b < a]
        assert not back, (connection, back)


def test_replica_whose_http_is_mute_keeps_nobody_waiting(
    fleet: Callable[[int, int], Fleet], report: Report
):
    """It is heard on NATS all the while, and leads the model on."""
    of = fleet(2, 1)
    with closing(Cable([one.port for one in of.replicas])) as cable:
        for one, port in zip(of.replicas, cable.ports, strict=True):
            one.settings["advertise"] = f"http://127.0.0.1:{port}"
        of.start()
        urls = [one.settings["advertise"] for one in of.replicas]
        of.learn(3)
        leader = of.leading()
        epoch = of.predict(leader).json()["epoch"]
        cable.cut()
        slowest = 0.0
        for number in range(3):
            began, headers = time.monotonic(), {"Idempotency-Key": f"k{number}"}
            answer = of.ask(1 - leader, "POST", "/samples", json=BODY, headers=headers)
            slowest = max(slowest, time.monotonic() - began)
            assert answer.status_code == 503
            assert answer.json()["outcome"] == ("unknown" if number == 0 else "not-learned")
        report(slowest_answer_seconds=round(slowest, 1))
        assert slowest < 15
        told = {one["url"]: one["http"] for one in of.told(1 - leader)["replicas"]}
        assert not told[urls[leader]]["answers"]
        metrics = httpx.get(f"{of.replicas[1 - leader].url}/metrics", timeout=30).text
        assert "wolfstream_fleet_unreachable_replicas 1.0" in metrics
        assert "replica unreachable over HTTP" in of.replicas[1 - leader].log()
        cable.mend()
        wait_for(lambda: of.predict(1 - leader).is_success)
        assert of.predict(leader).json()["epoch"] == epoch
