"""A server that is killed, seen through its answers alone: a checker that shares no code with it.

Clients learn, snapshot, roll back, delete and make anew, and read, while the process is killed at
random moments. Of what the answers say it must hold that

- the intervals of acknowledged samples, (sequence - learned, sequence], tile [0, sequence] of each
  life of a model, without a gap and without an overlap, once what had no answer was sent again;
- what is predicted at an epoch and a sequence is the same whenever it is read, to the last bit;
- a rollback leads to another epoch, in which the model predicts what it predicted at the snapshot,
  and an epoch that was left does not come back;
- a model that was deleted is gone, and one that was made anew begins another life.
"""

import contextlib
import itertools
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.hard.conftest import Report
from tests.service.process import ServerProcess

pytestmark = [pytest.mark.hard, pytest.mark.timeout(3000)]

SEED = int(os.environ.get("HARD_SEED", "20260101"))
CRASHES = int(os.environ.get("HARD_CRASHES", "100"))
SPEC = {
    "prepare": None,
    "adaptive": None,
    "working_set": {"max_size": 40},
    "asset": None,
}
ROWS = [[0.1 * k, 1.0 - 0.2 * k] for k in range(10)]
GONE = (OSError, urllib.error.URLError)


class Refused(Exception):
    """An answer that is a problem; its status is the argument."""


def call(url: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """The decoded answer. Raises Refused, and one of GONE where there is none."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"} | headers
    request = urllib.request.Request(url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            content = answer.read()
    except urllib.error.HTTPError as error:
        raise Refused(error.code) from None
    return json.loads(content) if content else {}


@dataclass
class Life:
    """What the answers said of one life of a model.

    epochs: in their order. learned: the acknowledged intervals. said: what was predicted at an
    epoch and a sequence. snapshots: the epoch at which each was made.
    """

    epochs: list[str]
    learned: dict[str, tuple[int, int]] = field(default_factory=dict)
    said: dict[tuple[str, int], Any] = field(default_factory=dict)
    snapshots: dict[int, str] = field(default_factory=dict)

    def check_tiling(self, sequence: int) -> None:
        """Every sample up to the sequence was acknowledged in exactly one interval."""
        reached = 0
        for begin, end in sorted(self.learned.values()):
            assert begin == reached, f"({begin}, {end}] follows {reached}"
            reached = end
        assert reached == sequence, f"{reached} acknowledged, the model is at {sequence}"


class Owner:
    """The only one who changes a model: one request at a time, again until it is answered."""

    def __init__(self, name: str, seed: str) -> None:
        self.name, self.path = name, f"/v1/models/{name}"
        self.random = Random(seed)
        self.lives: list[Life] = []
        self.counts: dict[str, int] = defaultdict(int)
        self.calm = False
        self._pending: Any = None
        self._keys = itertools.count()

    def run(self, url: str) -> None:
        """Until the server is gone."""
        with contextlib.suppress(*GONE):
            while not self.calm or self._pending:
                self._pending = self._pending or self._next()
                try:
                    self._pending(url)
                except Refused as error:
                    if error.args[0] != 503:
                        raise
                    time.sleep(0.02)
                else:
                    self._pending = None

    def _next(self) -> Any:
        if not self.lives:
            return self._make
        kinds = [self._learn] * 12 + [self._read] * 4 + [self._snapshot, self._roll_back]
        chosen = self.random.choice(kinds)
        if self.random.random() < 0.01:
            return self._delete
        if chosen == self._learn:
            n = self.random.choice([1, 1, 3, 20])
            key = f"{self.name}-{next(self._keys)}"
            rows = [[self.random.gauss(0, 1), self.random.gauss(0, 1)] for _ in range(n)]
            body = {"x": rows, "y": [int(a + b > 0) for a, b in rows]}
            return lambda url: self._learn(url, key, body)
        return chosen

    @property
    def life(self) -> Life:
        return self.lives[-1]

    def _make(self, url: str) -> None:
        told = call(url, "PUT", self.path, SPEC)
        old = {epoch for life in self.lives for epoch in life.epochs}
        assert told["epoch"] not in old
        assert told["sequence"] == 0
        self.lives.append(Life([told["epoch"]]))

    def _learn(self, url: str, key: str, body: Any) -> None:
        told = call(url, "POST", f"{self.path}/samples", body, **{"idempotency-key": key})
        interval = told["sequence"] - told["learned"], told["sequence"]
        assert told["learned"] == len(body["y"])
        assert told["epoch"] in self.life.epochs
        self.life.learned[key] = interval
        self.counts["samples"] += told["learned"]

    def _read(self, url: str) -> None:
        with contextlib.suppress(Refused):  # fewer than two classes
            told = call(url, "POST", f"{self.path}/predict", {"x": ROWS})
            self._note(told)

    def _note(self, told: Any) -> Any:
        at = told["epoch"], told["sequence"]
        assert told["epoch"] == self.life.epochs[-1], "an epoch that was left"
        said = told["prediction"], told["decision"]
        assert self.life.said.setdefault(at, said) == said, f"{self.name} at {at}"
        self.counts["readings"] += 1
        return said

    def _snapshot(self, url: str) -> None:
        told = call(url, "POST", f"{self.path}/snapshot")
        self.life.snapshots[told["sequence"]] = told["epoch"]
        self._read(url)

    def _roll_back(self, url: str) -> None:
        """Carried out once: only in the epoch in which it was decided."""
        state = call(url, "GET", self.path)
        kept = [item["sequence"] for item in call(url, "GET", f"{self.path}/history")["snapshots"]]
        if not kept:
            return
        if state["epoch"] == self.life.epochs[-1]:
            to = self.random.choice(kept)
            match = {"if-match": f'"{state["epoch"]}"'}
            try:
                state = call(url, "POST", f"{self.path}/rollback", {"sequence": to}, **match)
            except Refused as error:
                if error.args[0] == 404:  # newer snapshots have taken its place meanwhile
                    return
                raise
        known = {epoch for life in self.lives for epoch in life.epochs}
        assert state["epoch"] not in known, "a rollback begins another epoch"
        self.life.epochs.append(state["epoch"])
        self.counts["rollbacks"] += 1
        to = state["rolled_back"]["to"]
        before = self.life.said.get((self.life.snapshots.get(to, ""), to))
        with contextlib.suppress(Refused):
            said = self._note(call(url, "POST", f"{self.path}/predict", {"x": ROWS}))
            if before is not None and state["sequence"] == state["rolled_back"]["at"]:
                assert said == before, f"{self.name} went back to {to}"
                self.counts["compared with the snapshot"] += 1

    def _delete(self, url: str) -> None:
        state = {}
        with contextlib.suppress(Refused):
            state = call(url, "GET", self.path)
        if state:
            self.life.check_tiling(state["sequence"])
            call(url, "DELETE", self.path, **{"if-match": f'"{state["epoch"]}"'})
        self.counts["deletions"] += 1
        self._pending = self._make
        self._make(url)

    def check(self, url: str) -> None:
        """All that was acknowledged is there, once, and the model is where it was told to be."""
        state = call(url, "GET", self.path)
        assert (state["status"], state["epoch"]) == ("ok", self.life.epochs[-1])
        self.life.check_tiling(state["sequence"])
        self._read(url)


def test_what_the_answers_say_holds(tmp_path: Path, report: Report) -> None:
    random = Random(SEED)
    owners = [Owner(f"m{k}", f"{SEED}:{k}") for k in range(4)]
    server = ServerProcess(tmp_path / "data", snapshot_samples=60)
    crashes = 0
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
            crashes += 1
        server.start()
        for owner in owners:
            owner.calm = True
            owner.run(server.url)
            owner.check(server.url)
    finally:
        server.close()
    total: dict[str, int] = defaultdict(int)
    for owner in owners:
        for name, count in owner.counts.items():
            total[name] += count
    report(seed=SEED, crashes=crashes, lives=sum(len(o.lives) for o in owners), **total)
    assert total["samples"]
    assert total["rollbacks"]
