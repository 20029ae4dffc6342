"""Parties that use a model at the same time: they read, refit, and roll it back."""

import contextlib
import time
from collections.abc import Callable
from random import Random
from typing import Any

from tests.hard.black_box.calls import GONE, Refused, call
from tests.hard.black_box.record import Record

ROWS = [[0.1 * k, 1.0 - 0.2 * k] for k in range(10)]
Labels = Callable[[float], Any]


class Party:
    """A party that works until the server is gone, and continues when it is back.

    calm: to send only what had no answer before.
    """

    def __init__(self, record: Record, seed: str, labels: Labels = lambda value: int(value > 0)):
        self.record, self.random = record, Random(f"{seed}:{record.name}:{type(self).__name__}")
        self.calm = False
        self._labels = labels

    def run(self, url: str) -> None:
        """Until the server is gone."""
        with contextlib.suppress(*GONE):
            self.work(url)

    def work(self, url: str) -> None:
        """One life of the server. Raises one of GONE at its end."""
        raise NotImplementedError

    def samples(self, n: int) -> dict[str, Any]:
        """Return the body of n samples."""
        rows = [[self.random.gauss(0, 1), self.random.gauss(0, 1)] for _ in range(n)]
        return {"x": rows, "y": [self._labels(a + b) for a, b in rows]}


class Reader(Party):
    """Reads what was acknowledged, by `min_sequence` and without, and what others read."""

    head = ""

    def work(self, url: str) -> None:
        last = 0
        while not self.calm:
            floor, (epoch, durable) = self.record.learned, self.record.durable
            waits = self.random.random() < 0.5
            query = [f"min_sequence={epoch}:{durable}"] if waits else []
            query += [f"head={self.head}"] if self.head else []
            try:
                told = call(
                    url, "POST", f"{self.record.path}/predict?{'&'.join(query)}", {"x": ROWS}
                )
            except Refused as error:
                # Untrained so far; another epoch by now; not learned within the longest wait.
                error.expect(409, 412, 503)
                if error.status == 412:
                    now = call(url, "GET", self.record.path)
                    error.expect(412 if waits else 0)
                    assert now["epoch"] != epoch, "412 in the epoch that was named"
                time.sleep(0.01)
                continue
            assert told["sequence"] >= max(last, floor, durable if waits else 0)
            assert not waits or told["epoch"] == epoch
            last = told["sequence"]
            self.record.note_reading(told)


class FitReader(Reader):
    """Reads a head that is fitted on request."""

    head = "semiparametric"


class Refitter(Party):
    """Asks for refits, and for each that is done whether it is served from then on."""

    def __init__(self, record: Record, seed: str) -> None:
        super().__init__(record, seed)
        self._served = -1

    def work(self, url: str) -> None:
        while not self.calm:
            self._check_served(url)
            try:
                job = call(url, "POST", f"{self.record.path}/refit")
                while job["status"] in ("queued", "running"):
                    time.sleep(0.01)
                    job = call(url, "GET", job["href"])
            except Refused as error:
                error.expect(503)
                continue
            if job["status"] == "done":
                self._served = max(self._served, job["sequence"])
                self.record.counts["refits"] += 1
            else:  # of a window that is empty so far, or stopped with the server
                assert job["error"], job

    def _check_served(self, url: str) -> None:
        """What was done is not undone: neither by a later refit nor by the end of a process."""
        with contextlib.suppress(Refused):
            path = f"{self.record.path}/predict?head=semiparametric"
            told = call(url, "POST", path, {"x": ROWS})
            assert told["fit"]["sequence"] >= self._served
            self._served = told["fit"]["sequence"]
            return
        assert self._served < 0, "a fit that was served is gone"


class Historian(Party):
    """Makes snapshots and goes back to some, each rollback once."""

    def __init__(self, record: Record, seed: str) -> None:
        super().__init__(record, seed)
        self._wanted: dict[str, Any] = {}

    def work(self, url: str) -> None:
        while not self.calm or self._wanted:
            try:
                if self._wanted or self.random.random() < 0.3:
                    self._roll_back(url)
                else:
                    call(url, "POST", f"{self.record.path}/snapshot")
                    self.record.counts["snapshots"] += 1
            except Refused as error:
                # Newer snapshots have taken the place of the one that was made or meant.
                error.expect(404, 503)
                if error.status == 404:
                    self._wanted = {}
            time.sleep(self.random.uniform(0, 0.2))

    def _roll_back(self, url: str) -> None:
        state = call(url, "GET", self.record.path)
        if state["epoch"] == self.record.epochs[-1]:
            kept = call(url, "GET", f"{self.record.path}/history")["snapshots"]
            if not kept:
                return
            self._wanted = self._wanted or self.random.choice(kept)
            state = call(
                url,
                "POST",
                f"{self.record.path}/rollback",
                {"sequence": self._wanted["sequence"]},
                if_match=f'"{state["epoch"]}"',
            )
        told, wanted = state["rolled_back"], self._wanted
        assert told["to"] == wanted["sequence"]
        self.record.note_rollback(state["epoch"], told["at"], told["to"], wanted["epoch"])
        self._wanted = {}
