"""What the answers showed of a model, and what must hold.

- The intervals of acknowledged samples, (sequence - learned, sequence], do not overlap, and
  together with those of requests that had neither an answer nor a key they tile [0, sequence].
- Each epoch has one stretch of them, in the order in which the epochs came.
- What is predicted at an epoch and a sequence is the same whoever reads it and whenever, to the
  last bit; a rollback leads to what was predicted at its snapshot.
- Nobody reads less than was acknowledged before he asked.
"""

import threading
from collections import defaultdict
from itertools import groupby
from typing import Any, NamedTuple

Reading = tuple[Any, ...]


class Interval(NamedTuple):
    """Samples that were acknowledged together: those after `begin`, up to `end`."""

    begin: int
    end: int
    epoch: str


class Life:
    """A process of the server. begin: the sequence at its start. doubts: samples without an answer
    that are not sent again.
    """

    def __init__(self, begin: int) -> None:
        self.begin, self.doubts = begin, 0


class Record:
    """One model, from its creation to its end; any thread may use it.

    labels: those that it may predict; None for numbers.
    """

    def __init__(self, name: str, epoch: str, labels: list[Any] | None) -> None:
        self.name, self.path = name, f"/v1/models/{name}"
        self._labels = None if labels is None else {*map(repr, labels)}
        self.epochs = [epoch]
        self.lives = [Life(0)]
        self.counts: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()
        self._intervals: dict[str, Interval] = {}
        self._said: dict[Reading, Any] = {}
        self._rollbacks: list[tuple[str, int, str, int]] = []
        self._learned = self._durable = 0
        self._durable_epoch = epoch

    @property
    def learned(self) -> int:
        """The highest sequence that was acknowledged as learned."""
        return self._learned

    @property
    def durable(self) -> tuple[str, int]:
        """Epoch and sequence of what was acknowledged last, be it as durable only."""
        with self._lock:
            return self._durable_epoch, self._durable

    def note_samples(self, key: str, n: int, told: Any) -> None:
        """An answer to n samples; under the same key it is always the same."""
        is_learned = "learned" in told
        assert told["learned" if is_learned else "samples"] == n
        interval = Interval(told["sequence"] - n, told["sequence"], told["epoch"])
        with self._lock:
            assert self._intervals.setdefault(key, interval) == interval, f"{key}: another answer"
            if interval.end > self._durable:
                self._durable, self._durable_epoch = interval.end, interval.epoch
            if is_learned:
                self._learned = max(self._learned, interval.end)
            self.counts["answers to samples"] += 1

    def note_doubt(self, n: int) -> None:
        """Samples that had no answer and will not be sent again."""
        with self._lock:
            self.lives[-1].doubts += n

    def note_reading(self, told: Any) -> None:
        """Note a prediction for the rows that all parties send."""
        at = told["epoch"], told["sequence"], told["head"], str(told.get("fit"))
        said = told["prediction"], told["decision"]
        assert self._labels is None or {*map(repr, told["prediction"])} <= self._labels
        with self._lock:
            assert self._said.setdefault(at, said) == said, f"{self.name} at {at}: another view"
            self.counts["readings"] += 1

    def note_rollback(self, epoch: str, at: int, to: int, snapshot_epoch: str) -> None:
        """Note a rollback from a sequence to a snapshot and its epoch, which began an epoch."""
        with self._lock:
            assert epoch not in self.epochs, "a rollback begins another epoch"
            self.epochs.append(epoch)
            self._rollbacks.append((epoch, at, snapshot_epoch, to))
            self.counts["rollbacks"] += 1

    def begin_life(self, sequence: int) -> None:
        """Note a restart, with the model's state."""
        assert sequence >= self._durable, f"{self.name}: {self._durable} were acknowledged"
        assert sequence >= self.lives[-1].begin
        self.lives.append(Life(sequence))

    def check(self, sequence: int, epoch: str) -> None:
        """Check everything that must hold once every request with a key was answered."""
        assert epoch == self.epochs[-1]
        intervals = sorted(self._intervals.values())
        self.counts["samples acknowledged"] = sum(one.end - one.begin for one in intervals)
        ends = [0, *(one.end for one in intervals)]
        begins = [*(one.begin for one in intervals), sequence]
        gaps = [(begin, end) for begin, end in zip(ends, begins, strict=True) if begin != end]
        for begin, end in gaps:
            assert begin < end, f"{self.name}: ({end}, {begin}] was acknowledged twice"
        self._check_gaps(gaps, sequence)
        met = [met for met, _ in groupby(one.epoch for one in intervals)]
        assert met == [known for known in self.epochs if known in met], "epochs are mixed"
        self._check_rollbacks()

    def _check_gaps(self, gaps: list[tuple[int, int]], sequence: int) -> None:
        """Check gaps: unacknowledged samples may have been learned in the life that got them."""
        ends = [life.begin for life in self.lives[1:]] + [sequence]
        for life, end in zip(self.lives, ends, strict=True):
            missing = sum(
                max(0, min(end, gap_end) - max(life.begin, gap_begin))
                for gap_begin, gap_end in gaps
            )
            assert missing <= life.doubts, (
                f"{self.name}: {missing} of ({life.begin}, {end}] were never acknowledged, "
                f"{life.doubts} are in doubt"
            )
            self.counts["learned without an answer"] += missing
            self.counts["in doubt"] += life.doubts

    def _check_rollbacks(self) -> None:
        for epoch, at, snapshot_epoch, to in self._rollbacks:
            after = {at_[2:]: said for at_, said in self._said.items() if at_[:2] == (epoch, at)}
            for key, said in after.items():
                before = self._said.get((snapshot_epoch, to, *key))
                assert before in (None, said), f"{self.name} went back to {to}"
                self.counts["rollbacks compared with the snapshot"] += before is not None
