"""A replica's index of a model's log: the places of commits and keys, but no samples.

Some commits one after another are a segment: so the index of a log with a commit for each of its
samples stays small. What is purged are whole segments, and never the last one. A checkpoint begins
one, and so does a rollback: its state may replace all that comes before.
"""

import json
from typing import NamedTuple, TypeAlias

from service.fleet.commit_messages import LogRow, read_key, read_rollback
from service.storage.entries import KeyedRequest, Rollback

_COMMITS_OF_SEGMENT = 64
WITH_SAMPLES = frozenset({"samples", "labels"})
ENTRIES = WITH_SAMPLES | {"prediction", "fit", "checkpoint"}


class Commit(NamedTuple):
    """A commit in a log.

    previous, first, last: sequences in the stream of the message before it, and of its own.
    writer: what all commits have in common that one replica wrote while it led.
    """

    previous: int
    first: int
    last: int
    writer: bytes
    rows: list[LogRow]


class Segment:
    """Some commits one after another.

    previous, first: of the first commit. The highest sequences: `samples` of rows with samples,
    `others` of rows that a snapshot replaces once it is later, `predictions` of predicted rows, of
    which `remembered` counts the last one.
    """

    def __init__(self, commit: Commit) -> None:
        self.previous, self.first = commit.previous, commit.first
        self.commits = 0
        self.begin: int | None = None
        self.samples = self.others = self.predictions = self.remembered = -1

    def add(self, commit: Commit) -> None:
        """Take the next commit."""
        self.commits += 1
        for row in commit.rows:
            if row.kind in WITH_SAMPLES:
                if self.begin is None:
                    self.begin = row.sequence - row.samples
                self.samples = max(self.samples, row.sequence)
            elif row.kind == "prediction":
                self.predictions = max(self.predictions, row.sequence)
                self.remembered = max(self.remembered, row.block)
            elif row.kind not in ("key", "answer", "shorter"):
                self.others = max(self.others, row.sequence)

    def superfluous(self, up_to: int, remembered: int) -> bool:
        """Whether a snapshot of a sequence, and rows that wait no longer, replace all of it."""
        gone = self.predictions < up_to or self.remembered <= remembered
        return gone and self.samples <= up_to and self.others < up_to

    def matters_after(self, sequence: int) -> bool:
        """Return whether a replay after a sequence may need some of it."""
        return self.samples > sequence or max(self.others, self.predictions) >= sequence


class KnownKey(NamedTuple):
    """The key of a request, and the place of its answer.

    place: the first message that has something of it. answer: that of its answer; None without one.
    n_bytes: of the answer. kept: whether all of it is kept beside the snapshots, where `place` and
    `answer` are then.
    """

    request: KeyedRequest
    place: int
    answer: int | None = None
    n_bytes: int = 0
    kept: bool = False

    def answered(self, row: LogRow, place: int, kept: bool) -> "KnownKey":
        """Return the key with the place of its answer."""
        first = place if self.kept or kept else self.place
        return KnownKey(self.request, first, place, len(row.record), kept)


# The sequence at which an epoch began, the epoch, and the rollback if it began with one.
Event: TypeAlias = tuple[int, str, Rollback | None]


class LogIndex:
    """The index of one model's log. Used by one thread at a time.

    end: the sequence of the last sample that it has. reached: of the last one that counts, as a
    rollback makes those after it void. unanswered: the sequences of keys without an answer.
    """

    def __init__(self, model: int) -> None:
        self._model = model
        self.segments: list[Segment] = []
        self.keys: dict[int, KnownKey] = {}
        self.unanswered: set[int] = set()
        self.end = self.reached = 0
        # In the log's order.
        self._events: list[Event] = []

    def add(self, commit: Commit) -> None:
        """Take the next commit of the log."""
        begins = bool(commit.rows) and commit.rows[0].kind in ("checkpoint", "rollback")
        if begins or not self.segments or self.segments[-1].commits >= _COMMITS_OF_SEGMENT:
            self.segments.append(Segment(commit))
        self.segments[-1].add(commit)
        for row in commit.rows:
            if row.kind in WITH_SAMPLES:
                self.end = self.reached = row.sequence
            else:
                self.add_row(row, commit.first)

    def add_row(self, row: LogRow, place: int, kept: bool = False) -> None:
        """Take a key, an answer, a rollback or an epoch; others are nothing to remember."""
        known = self.keys.get(row.sequence)
        if row.kind == "key":
            if known is None:
                self.keys[row.sequence] = KnownKey(read_key(self._model, row), place, kept=kept)
                self.unanswered.add(row.sequence)
        elif row.kind in ("answer", "shorter"):
            if known is not None and (known.answer is None or row.kind == "shorter"):
                self.keys[row.sequence] = known.answered(row, place, kept)
                self.unanswered.discard(row.sequence)
        elif row.kind == "rollback":
            rollback, learned = read_rollback(row)
            self._forget([one for one in self.keys if one > learned])
            self._events.append((row.sequence, rollback.epoch, rollback))
            self.reached = min(self.reached, row.sequence)
        elif row.kind == "epoch":
            self._events.append((row.sequence, json.loads(row.record)["epoch"], None))

    def epoch_since(self, sequence: int) -> str | None:
        """Return the last epoch that began at a sequence or after it."""
        return _last_epoch([event for event in self._events if event[0] >= sequence])

    def epoch_before(self, sequence: int) -> str | None:
        """Return the last epoch that began before a sequence."""
        return _last_epoch([event for event in self._events if event[0] < sequence])

    @property
    def last_event(self) -> int:
        """The highest sequence at which an epoch began; 0 where none did."""
        return max((at for at, *_ in self._events), default=0)

    def rollbacks(self) -> list[Rollback]:
        """Return the rollbacks, the last one first."""
        return [rollback for *_, rollback in reversed(self._events) if rollback is not None]

    def begin(self) -> int | None:
        """Return the sequence after which the entries begin; None without any."""
        begins = (one.begin for one in self.segments if one.begin is not None)
        return next(begins, None)

    def before(self, sequence: int) -> int:
        """Return the message after which a replay after a sequence has to begin."""
        needed = (one.previous for one in self.segments if one.matters_after(sequence))
        last = self.segments[-1].previous if self.segments else 0
        return next(needed, last)

    def superfluous(self, up_to: int, remembered: int) -> tuple[list[Segment], int]:
        """Return the first segments that nothing needs, and the first message after them."""
        gone = list[Segment]()
        for one, following in zip(self.segments, self.segments[1:], strict=False):
            if not one.superfluous(up_to, remembered):
                return gone, one.first
            gone.append(one)
            after = following.first
        return gone, after if gone else 0

    def forget(self, up_to: int, n_segments: int) -> None:
        """Forget events before a sequence, which a snapshot has, and the first segments."""
        del self.segments[:n_segments]
        self._events = [event for event in self._events if event[0] >= up_to]

    def add_kept(self, commit: Commit) -> None:
        """Take keys and answers that are kept elsewhere, which count more than those in the log."""
        for row in commit.rows:
            self.add_row(row, commit.first, kept=True)
            if row.sequence in self.keys:
                known = self.keys[row.sequence]
                self.keys[row.sequence] = known._replace(place=commit.first, kept=True)

    def known_before(self, message: int) -> list[KnownKey]:
        """Return the keys of which a row is in the log before a message."""
        return [key for key in self.keys.values() if not key.kept and key.place < message]

    def forget_keys(self, up_to: int) -> None:
        """Forget the keys of entries up to a sequence."""
        self._forget([one for one in self.keys if one <= up_to])

    def _forget(self, sequences: list[int]) -> None:
        for sequence in sequences:
            del self.keys[sequence]
        self.unanswered.difference_update(sequences)


def _last_epoch(events: list[Event]) -> str | None:
    """Return the epoch of the highest sequence; of several there the last one."""
    return max(reversed(events), key=lambda event: event[0])[1] if events else None
