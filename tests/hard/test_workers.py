"""Workers and leaders are killed under load; every keyed request is learned exactly once."""

import os
import random
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.hard.conftest import Report
from tests.hard.processes import together
from tests.service.process import CommandProcess
from tests.service.specs import PAPERS

pytestmark = [pytest.mark.hard, pytest.mark.timeout(1800)]

WORKERS, CLIENTS = 3, 6
KILLS = int(os.environ.get("HARD_CRASHES", "100")) // 4
SEED = int(os.environ.get("HARD_SEED", "0"))


class Client:
    """Posts samples under keys, each until it is acknowledged, over connections that may end."""

    def __init__(self, url: str, number: int, ended: threading.Event) -> None:
        self.sequences: list[int] = []
        self.sent_again = 0
        self._url, self._number, self._ended = url, number, ended

    def run(self) -> None:
        """Go on until told to end."""
        while not self._ended.is_set():
            key = {"Idempotency-Key": f'"{self._number}-{len(self.sequences)}"'}
            sample = {"x": [self._number, len(self.sequences) % 7], "y": len(self.sequences) % 2}
            self._acknowledged(sample, key)

    def _acknowledged(self, sample: object, key: dict[str, str]) -> None:
        while True:
            try:
                with httpx.Client(timeout=30) as http:
                    answer = http.post(self._url, json=sample, headers=key)
            except httpx.TransportError:
                self.sent_again += 1
            else:
                if answer.status_code == 200:
                    self.sequences.append(answer.json()["sequence"])
                    return
                assert answer.status_code == 503, answer.text
            time.sleep(0.05)


def workers_of(leader: int) -> list[int]:
    children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
    return [
        int(child)
        for child in children
        if b"wolfstream.service.server.worker" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def kill_one(server: CommandProcess, chance: random.Random) -> str:
    """Kill a worker, or now and then the leader, which is started again."""
    assert server.process is not None
    workers = workers_of(server.process.pid)
    if workers and chance.random() < 0.8:
        os.kill(chance.choice(workers), signal.SIGKILL)
        return "worker"
    server.kill()
    server.start()
    return "leader"


def test_every_keyed_request_is_learned_once(tmp_path: Path, report: Report) -> None:
    chance, ended = random.Random(SEED), threading.Event()
    with closing(CommandProcess(tmp_path / "data", workers=WORKERS)) as server:
        server.start()
        url = f"{server.url}/v1/models/m"
        httpx.put(url, json=PAPERS, timeout=60).raise_for_status()
        clients = [Client(f"{url}/samples", k, ended) for k in range(CLIENTS)]
        killed: list[str] = []

        def campaign() -> None:
            try:
                for _ in range(KILLS):
                    time.sleep(chance.uniform(0.2, 1.5))
                    killed.append(kill_one(server, chance))
            finally:
                ended.set()

        together(campaign, *(client.run for client in clients))
        sequences = sorted(sequence for client in clients for sequence in client.sequences)
        known = httpx.get(url, timeout=60).json()["sequence"]
    again = sum(client.sent_again for client in clients)
    report(kills=len(killed), leaders=killed.count("leader"), learned=known, sent_again=again)
    assert sequences == list(range(1, known + 1))
