"""The owner of a model, which learns, reads, rolls back, deletes and creates it again.

- The intervals of acknowledged samples tile [0, sequence] of each life, once what had no answer was
  sent again.
- A rollback leads to another epoch, in which the model predicts what it predicted at the snapshot,
  and an epoch that was left does not come back.
- A model that was deleted is gone, and one that was made anew begins another life.
"""

import contextlib
import itertools
import time
from collections import defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.hard.black_box.calls import GONE, Refused, call
from tests.hard.black_box.parties import ROWS

SPEC = {
    "prepare": None,
    "adaptive": None,
    "working_set": {"max_size": 40},
    "asset": None,
}


@dataclass
class Life:
    """What the answers showed of one life of a model.

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
                    if error.status != 503:
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
        told = call(url, "POST", f"{self.path}/samples", body, idempotency_key=key)
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
            match = f'"{state["epoch"]}"'
            try:
                state = call(url, "POST", f"{self.path}/rollback", {"sequence": to}, if_match=match)
            except Refused as error:
                if error.status == 404:  # newer snapshots have taken its place meanwhile
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
            call(url, "DELETE", self.path, if_match=f'"{state["epoch"]}"')
        self.counts["deletions"] += 1
        self._pending = self._make
        self._make(url)

    def check(self, url: str) -> None:
        """Check that everything acknowledged is there once, and the model's state is right."""
        state = call(url, "GET", self.path)
        assert (state["status"], state["epoch"]) == ("ok", self.life.epochs[-1])
        self.life.check_tiling(state["sequence"])
        self._read(url)
