"""Late labels for a server that is killed, seen only through its answers.

One client for each model predicts rows under ids, labels them in another order, some twice and some
with another label, learns samples in between, and sends again what had no answer. Of what it is
told it must hold that

- a row whose prediction was answered is never unknown: its label is learned, once;
- the answer to a label has the prediction that was told then, however often the server was killed;
- a label that comes again is `replayed`, another one for the same row a `conflict`;
- the model's sequence counts each sample and each labelled row once, and as many rows wait as were
  predicted and not labelled.
"""

import contextlib
import itertools
import os
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.hard.black_box.calls import GONE, Refused, call
from tests.hard.conftest import Report
from tests.service.process import CommandProcess

pytestmark = [pytest.mark.hard, pytest.mark.timeout(3000)]

SEED = int(os.environ.get("HARD_SEED", "20260101"))
CRASHES = int(os.environ.get("HARD_CRASHES", "100"))
PAPERS: dict[str, Any] = {"prepare": None, "adaptive": None}
SPECS: list[dict[str, Any]] = [
    PAPERS | {"asset": None, "working_set": {"max_size": 40}},
    PAPERS | {"task": "regression", "asset": {"dimension": 16}},
    PAPERS | {"asset": None, "kernel": {"type": "linear"}, "working_set": {"max_size": 40}},
]


class Owner:
    """The only one who changes a model: one request at a time, again until it is answered.

    told: of each row that was answered, its prediction. labels: of each row that was learned.
    """

    def __init__(self, number: int) -> None:
        self.spec = SPECS[number % len(SPECS)]
        self.path = f"/v1/models/m{number}"
        self.random = Random(f"{SEED}:{number}")
        self.counts: Counter[str] = Counter()
        self.told: dict[Any, Any] = {}
        self.labels: dict[Any, Any] = {}
        self.samples = 0
        self.calm = False
        self._regression = "task" in self.spec
        self._numbers = itertools.count()
        self._pending: Any = None

    def run(self, url: str) -> None:
        """Until the server is gone."""
        with contextlib.suppress(*GONE):
            while not self.calm or self._pending:
                self._pending = self._pending or self._next()
                try:
                    self._pending(url)
                except Refused as error:
                    error.expect(503)
                    time.sleep(0.02)
                else:
                    self._pending = None

    def _next(self) -> Any:
        if not self.samples:
            return self._begin
        kind = self.random.choice(["predict", "predict", "label", "label", "learn", "snapshot"])
        if kind == "predict":
            return self._prediction()
        if kind == "label" and self.told:
            return self._labelling()
        if kind == "learn":
            key, body = f"{next(self._numbers)}", self._samples(self.random.randint(1, 5))
            return lambda url: self._learn(url, key, body)
        return lambda url: call(url, "POST", f"{self.path}/snapshot")

    def _begin(self, url: str) -> None:
        call(url, "PUT", self.path, self.spec)
        self._learn(url, "first", self._fixed_samples())

    def _fixed_samples(self) -> Any:
        rows = [[1.0, 0.5], [-1.0, 0.25], [0.5, -2.0], [-0.5, -0.1]]
        return {"x": rows, "y": [self._label_of(row) for row in rows]}

    def _row(self) -> list[float]:
        return [self.random.gauss(0, 1), self.random.gauss(0, 1)]

    def _label_of(self, row: list[float]) -> Any:
        return row[0] - row[1] if self._regression else int(row[0] > 0)

    def _samples(self, n: int) -> Any:
        rows = [self._row() for _ in range(n)]
        return {"x": rows, "y": [self._label_of(row) for row in rows]}

    def _learn(self, url: str, key: str, body: Any) -> None:
        call_of = "asset" if self._regression else "samples"
        call(url, "POST", f"{self.path}/{call_of}", body, **{"idempotency-key": key})
        self.samples += len(body["y"])

    def _prediction(self) -> Any:
        n = self.random.choice([1, 2, 7, 30])
        number = next(self._numbers)
        ids = [number * 100 + k if number % 2 else f"{number}.{k}" for k in range(n)]
        body = {"x": [self._row() for _ in range(n)], "ids": ids}
        return lambda url: self._predict(url, body)

    def _predict(self, url: str, body: Any) -> None:
        told = call(url, "POST", f"{self.path}/predict", body)
        assert told["ids"] == body["ids"]
        self.told |= dict(zip(body["ids"], told["prediction"], strict=True))
        self.counts["rows predicted"] += len(body["ids"])
        self.counts["answers given a second time"] += told["decision"][0] is None

    def _labelling(self) -> Any:
        waiting = [row for row in self.told if row not in self.labels]
        self.random.shuffle(waiting)
        ids = waiting[: self.random.choice([1, 3, 20])]
        known = list(self.labels)
        ids += self.random.sample(known, min(len(known), 3))
        self.random.shuffle(ids)
        if not ids:
            return self._prediction()
        y = [self._some_label(row) for row in ids]
        return lambda url: self._label(url, {"ids": ids, "y": y})

    def _some_label(self, row: Any) -> Any:
        """For a row that has a label, that one or another one."""
        if row in self.labels and self.random.random() < 0.5:
            return self.labels[row]
        return self.random.random() if self._regression else self.random.choice([0, 1])

    def _label(self, url: str, body: Any) -> None:
        told = call(url, "POST", f"{self.path}/labels", body)
        results = told["results"]
        for row, label, status, prediction in zip(
            body["ids"], body["y"], results["status"], results["prediction"], strict=True
        ):
            assert prediction == self.told[row], f"{row} in {self.path}"
            if row in self.labels:
                assert status == ("replayed" if self.labels[row] == label else "conflict")
            else:
                # It was learned in this request, or in the same one that had no answer.
                assert status in ("learned", "replayed"), f"{row} in {self.path}: {status}"
                self.labels[row] = label
            self.counts[status] += 1

    def check(self, url: str) -> None:
        """Check that everything acknowledged is there once."""
        state = call(url, "GET", self.path)
        assert state["status"] == "ok", state["notice"]
        assert state["sequence"] == self.samples + len(self.labels)
        assert state["pending"]["rows"] == len(self.told) - len(self.labels)
        assert state["pending"]["joined"] == len(self.labels)
        assert state["pending"]["expired"] == 0


def test_each_label_is_learned_once(tmp_path: Path, report: Report) -> None:
    random = Random(SEED)
    owners = [Owner(number) for number in range(6)]
    server = CommandProcess(tmp_path / "data", snapshot_samples=80)
    try:
        for _ in range(CRASHES):
            server.start()
            running = [threading.Thread(target=owner.run, args=[server.url]) for owner in owners]
            for thread in running:
                thread.start()
            time.sleep(random.uniform(0.05, 1.5))
            server.kill()
            for thread in running:
                thread.join(120)
        server.start()
        for owner in owners:
            owner.calm = True
            owner.run(server.url)
            owner.check(server.url)
    finally:
        server.close()
    total = sum((owner.counts for owner in owners), Counter[str]())
    report(seed=SEED, crashes=CRASHES, samples=sum(owner.samples for owner in owners), **total)
    assert total["learned"]
    assert total["conflict"]
