"""More samples than the server can learn, for minutes: its memory is bounded, it says 503 with
Retry-After, predictions go on, and all that it acknowledged is there.
"""

import os
import threading
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.hard.conftest import Report
from tests.hard.processes import resident_bytes
from tests.service.process import CommandProcess
from tests.service.streams import body, two_classes

pytestmark = [pytest.mark.hard, pytest.mark.timeout(1200)]

SECONDS = float(os.environ.get("HARD_OVERLOAD_SECONDS", "60"))
CLIENTS, BATCH, FEATURES = 8, 64, 50
# Learning a sample takes many times as long as sending it.
SPEC = {"working_set": {"max_size": 500, "corrective_steps": 100}, "asset": None}
GROWTH_BYTES = 64 << 20


class Flood(threading.Thread):
    """Posts batches as fast as they are answered, and does not heed Retry-After."""

    def __init__(self, url: str, seed: int, end: float) -> None:
        super().__init__()
        self._url, self._end = url, end
        self._body = body(two_classes(BATCH, seed, FEATURES))
        self.learned = self.refused = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        with httpx.Client(base_url=self._url, timeout=120) as http:
            while time.monotonic() < self._end:
                answer = http.post("/v1/models/m/samples", json=self._body)
                if answer.status_code == 200:
                    self.learned += answer.json()["learned"]
                elif answer.status_code == 503 and "retry-after" in answer.headers:
                    self.refused += 1
                else:
                    self.wrong.append(f"{answer.status_code} {answer.text[:200]}")


def test_overloaded_server_stays_bounded(tmp_path: Path, report: Report) -> None:
    settings = {"queue_samples": 256, "group_samples": 64, "snapshot_samples": 10_000}
    with closing(CommandProcess(tmp_path / "data", **settings).start()) as server:
        httpx.put(f"{server.url}/v1/models/m", json=SPEC).raise_for_status()
        end = time.monotonic() + SECONDS
        clients = [Flood(server.url, seed, end) for seed in range(CLIENTS)]
        for client in clients:
            client.start()
        memory, waits = [], []
        row = {"x": [[0.5] * FEATURES]}
        with httpx.Client(base_url=server.url, timeout=60) as http:
            while time.monotonic() < end:
                began = time.monotonic()
                assert http.post("/v1/models/m/predict", json=row).status_code in (200, 409)
                waits.append(time.monotonic() - began)
                memory.append(resident_bytes(server))
                time.sleep(0.25)
            for client in clients:
                client.join()
            sequence = http.get("/v1/models/m").json()["sequence"]
        learned = sum(client.learned for client in clients)
        settled = memory[len(memory) // 5]
        report(
            seconds=SECONDS,
            samples_acknowledged=learned,
            answers_503=sum(client.refused for client in clients),
            memory_MB=[b >> 20 for b in memory[:: max(1, len(memory) // 12)]],
            predict_median_and_worst_ms=[
                round(1000 * sorted(waits)[k]) for k in (len(waits) // 2, -1)
            ],
        )
        assert not [wrong for client in clients for wrong in client.wrong]
        assert all(client.learned for client in clients)
        assert any(client.refused for client in clients)
        assert max(memory) - settled < GROWTH_BYTES
        assert sequence == learned
        server.kill()
        server.start()
        assert httpx.get(f"{server.url}/v1/models/m").json()["sequence"] == learned
