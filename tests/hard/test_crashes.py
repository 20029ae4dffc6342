"""Kills a server under mixed load at random moments, a hundred times and more.

After each crash the log is read: every acknowledged sample stands where it was told to stand,
none stands there twice. Restarted, the server predicts bit for bit what a model in this process
predicts that has absorbed the whole log from its first entry, and has gone on from each of its
checkpoints as from a snapshot. The clients send what had no answer
again, under the same keys; in the end each sample is there exactly once.
"""

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np
import pytest

from tests.hard.clients import Churn, Client, HttpClient, Sample, StreamClient
from tests.hard.conftest import Report
from tests.hard.processes import together
from tests.service.process import CommandProcess
from tests.service.specs import PAPERS
from wolfstream.service.heads.fit import fit_from_record
from wolfstream.service.model.learner import Learner
from wolfstream.service.model.live import Model
from wolfstream.service.recovery.absorb import decode_block
from wolfstream.service.spec.model import read_spec
from wolfstream.service.storage.data_directory import open_storage
from wolfstream.service.storage.entries import Entry
from wolfstream.service.storage.sqlite_rows import read_created, read_entry

pytestmark = [pytest.mark.hard, pytest.mark.timeout(3000)]

SEED = int(os.environ.get("HARD_SEED", "20260101"))
CRASHES = int(os.environ.get("HARD_CRASHES", "100"))
SPECS: dict[str, dict[str, Any]] = {
    "both": PAPERS | {"working_set": {"max_size": 80}, "asset": {"dimension": 16}},
    "nystrom": PAPERS
    | {
        "kernel": {"type": "rbf", "gamma": 1e-4},
        "working_set": {"max_size": 40, "corrective_steps": 3},
        "asset": {"features": "nystrom", "dimension": 12},
    },
    "numbers": PAPERS
    | {
        "task": "regression",
        "working_set": None,
        "asset": {"dimension": 16},
        "semiparametric": {"window": 60},
    },
}
GRID = np.random.default_rng(SEED).uniform([0, 0], [8, 400], (60, 2))
# What a snapshot makes superfluous is kept aside in the commit that drops it.
KEEP = """
CREATE TABLE kept AS SELECT * FROM log WHERE 0;
CREATE TRIGGER keep BEFORE DELETE ON log WHEN old.kind IN ('samples', 'fit', 'checkpoint') BEGIN
    INSERT INTO kept SELECT * FROM log
    WHERE model = old.model AND sequence = old.sequence AND place = old.place;
END;
"""


class Replica:
    """A model in this process that follows a log from its first entry."""

    def __init__(self, name: str) -> None:
        self.learner = Learner(Model(1, name, read_spec(SPECS[name])))
        self.sequence_of: dict[Sample, int] = {}
        self.last_fit = b""
        self.checkpoints: set[int] = set()

    def follow(self, blocks: list[list[Entry]]) -> None:
        """Absorb what is new; that which is not must stand there as before."""
        for block in blocks:
            if block[0].kind == "checkpoint":
                self._go_on_from(block[0])
                continue
            if not block[0].samples:
                if block[0].record != self.last_fit and block[0].sequence >= self.learner.sequence:
                    self.last_fit = block[0].record
                    self.learner.adopt(block[0].head, fit_from_record(block[0].record))
                continue
            first = block[0].sequence - block[0].samples
            samples = decode_block(block).samples
            for k, row in enumerate(samples.X.tolist()):  # type: ignore[union-attr]
                sample = int(row[0]), int(row[1])
                held = self.sequence_of.setdefault(sample, first + 1 + k)
                assert held == first + 1 + k, f"{sample} stands at {held} and {first + 1 + k}"
            if block[-1].sequence > self.learner.sequence:
                assert first == self.learner.sequence, "the log has a gap"
                self.learner.absorb(block[0].head, samples)
        self.learner.publish()

    def _go_on_from(self, entry: Entry) -> None:
        if entry.sequence not in self.checkpoints and entry.sequence >= self.learner.sequence:
            self.learner.go_on_from(self.learner.checkpoint())
        self.checkpoints.add(entry.sequence)

    def check(self, http: httpx.Client) -> None:
        """Check that the server answers as this model does, to the last bit."""
        name, published = self.learner.model.name, self.learner.model.published
        for head, view in published.heads.items():
            if head == "semiparametric" and not self.last_fit:
                continue
            told = http.post(f"/v1/models/{name}/predict?head={head}", json={"x": GRID.tolist()})
            if told.status_code == 409:  # fewer than two classes so far
                continue
            said = told.raise_for_status().json()
            assert said["sequence"] == published.sequence
            expected = view.predict(GRID)
            assert said["prediction"] == expected.prediction, (name, head)
            assert said["decision"] == expected.decision, (name, head)


def blocks_of(folder: Path, scratch: Path) -> dict[str, list[list[Entry]]]:
    """All that a log ever held, by model; read from a copy, so that recovery is the server's."""
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(folder, scratch, ignore=shutil.ignore_patterns("snapshots"))
    open_storage(scratch).close()  # it refuses what is damaged
    with closing(sqlite3.connect(scratch / "log.sqlite")) as database:
        made = database.execute("SELECT * FROM log WHERE kind = 'created'").fetchall()
        models = {found.number: found.name for found in map(read_created, made)}
        logged = "SELECT * FROM log WHERE kind IN ('samples', 'fit', 'checkpoint')"
        union = f"{logged} UNION ALL SELECT * FROM kept"
        rows = database.execute(f"{union} ORDER BY model, sequence, place").fetchall()
    found: dict[str, list[list[Entry]]] = {}
    for (model, *_), block in groupby(
        map(read_entry, rows), lambda entry: (entry.model, entry.block, entry.kind)
    ):
        if models.get(model) in SPECS:
            entries = list(block)
            blocks = [entries] if entries[0].samples else [[fit] for fit in entries]
            found.setdefault(models[model], []).extend(blocks)
    return found


class Lane:
    """A server that is killed repeatedly, its clients, and copies of its models."""

    def __init__(self, folder: Path, number: int, snapshot_samples: int) -> None:
        self.server = CommandProcess(folder / "data", snapshot_samples=snapshot_samples)
        self._scratch = folder / "copy"
        self._random = Random(f"{SEED}:{number}")
        self.replicas = {name: Replica(name) for name in SPECS}
        self.clients: list[Client] = [
            HttpClient(0, "both", 1),
            HttpClient(1, "both", 20),
            StreamClient(2, "both", packed=False),
            HttpClient(3, "nystrom", 6),
            StreamClient(4, "nystrom", packed=True),
            HttpClient(5, "numbers", 5, target=0.25),
        ]
        self.churn = Churn("numbers")
        self.crashes = self.crashes_at_start = 0

    def run(self, crashes: int) -> None:
        """Crash this often, then let everything unanswered be answered."""
        try:
            self._prepare()
            for _ in range(crashes):
                if self._random.random() < 0.15:
                    self._crash_at_start()
                self._live_and_crash()
            self._settle()
        finally:
            self.server.close()

    def _prepare(self) -> None:
        self.server.start()
        with httpx.Client(base_url=self.server.url, timeout=60) as http:
            for name, spec in SPECS.items():
                http.put(f"/v1/models/{name}", json=spec).raise_for_status()
        assert self.server.terminate() == 0
        with closing(sqlite3.connect(self.server.data / "log.sqlite")) as database:
            database.executescript(KEEP)

    def _crash_at_start(self) -> None:
        self.server.launch()
        time.sleep(self._random.uniform(0.3, 4))
        self.server.kill()
        self.crashes_at_start += 1

    def _live_and_crash(self) -> None:
        self.server.start()
        self._compare()
        running = self._start_clients()
        time.sleep(self._random.uniform(0.02, 1.5))
        self.server.kill()
        for client in running:
            client.join(120)
        self.crashes += 1
        self._check_log()

    def _settle(self) -> None:
        self.server.start()
        self._compare()
        for client in (*self.clients, self.churn):
            client.calm = True
        for thread in self._start_clients():
            thread.join(120)
        self.server.kill()
        self._check_log()
        for client in self.clients:
            held = self.replicas[client.model].sequence_of
            of_client = sorted(k for number, k in held if number == client.number)
            assert of_client == list(range(client.sent)), "not each sample exactly once"
            assert len(client.acknowledged) == client.sent

    def _start_clients(self) -> list[threading.Thread]:
        running = []
        for client in (*self.clients, self.churn):
            running.append(threading.Thread(target=client.run, args=[self.server.url]))
            running[-1].start()
        return running

    def _check_log(self) -> None:
        """Check that what was acknowledged is at its sequence, and nothing is there twice."""
        for name, blocks in blocks_of(self.server.data, self._scratch).items():
            self.replicas[name].follow(blocks)
        for client in self.clients:
            held = self.replicas[client.model].sequence_of
            for sample, sequence in client.acknowledged.items():
                assert held.get(sample) == sequence, f"{sample} was told to be {sequence}"

    def _compare(self) -> None:
        with httpx.Client(base_url=self.server.url, timeout=60) as http:
            for replica in self.replicas.values():
                replica.check(http)
            names = {model["model"] for model in http.get("/v1/models").json()["models"]}
        for name, exists in self.churn.exists.items():
            assert exists is None or (name in names) == exists, f"{name}: {exists}"


@pytest.fixture
def lanes(tmp_path: Path) -> Iterator[list[Lane]]:
    made = []
    for number, snapshot_samples in enumerate((150, 10**9)):
        (tmp_path / str(number)).mkdir()
        made.append(Lane(tmp_path / str(number), number, snapshot_samples))
    yield made
    for lane in made:
        lane.server.close()


def test_crashes_lose_and_repeat_no_sample(lanes: list[Lane], report: Report) -> None:
    together(*(lambda lane=lane: lane.run(CRASHES // len(lanes)) for lane in lanes))
    clients = [client for lane in lanes for client in lane.clients]
    held = sum(len(r.sequence_of) for lane in lanes for r in lane.replicas.values())
    report(
        seed=SEED,
        crashes_under_load=sum(lane.crashes for lane in lanes),
        crashes_while_starting=sum(lane.crashes_at_start for lane in lanes),
        samples_sent=sum(client.sent for client in clients),
        samples_acknowledged=sum(len(client.acknowledged) for client in clients),
        samples_held=held,
        answers_given_a_second_time=sum(client.repeated for client in clients),
        answers_503=sum(client.refused for client in clients),
        refits=sum(lane.churn.refits for lane in lanes),
        models_made_on_the_way=sum(lane.churn.made for lane in lanes),
    )
    assert held == sum(client.sent for client in clients)
    assert all(lane.crashes for lane in lanes)
