"""In-memory index of one model's log: where its commits and idempotency keys are.

Up to 64 consecutive commits form a segment, the unit of purging, so even a log with one commit per
sample has a small index. A checkpoint or a rollback begins a new segment: its state may replace
everything before it. The last segment is never purged.

It also knows what a log can be, and notes what cannot be (`faults`): two commits of samples at one
sequence, a key that was committed twice, a commit of another writer than the one whose term it is.
It holds no samples, and does not look for missing messages: `Chain` does.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from wolfstream.service.fleet.commit_messages import LogRow, read_key, read_rollback
from wolfstream.service.storage.entries import KeyedRequest, Rollback

_COMMITS_OF_SEGMENT = 64
WITH_SAMPLES = frozenset({"samples", "labels"})
ENTRIES = WITH_SAMPLES | {"prediction", "fit", "checkpoint"}
# Rows of which no snapshot has to know.
_WITHOUT_STATE = frozenset(
    {"key", "answer", "shorter", "created", "purged", "forgotten", "unpinned", "deleted"}
)
# Rows with which the term of another writer begins.
_BEGIN_A_TERM = frozenset({"created", "epoch"})
# More are not reported: a log that is forked may have one for each commit.
_MOST_FAULTS = 10


class Commit(NamedTuple):
    """A commit in a log.

    Attributes:
        previous: the sequence in the stream of the message before it.
        first: the sequence of its first message.
        last: the sequence of its last message.
        writer: what all commits of one term have in common.
        rows: its content.
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
            elif row.kind not in _WITHOUT_STATE:
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


class Purge(NamedTuple):
    """What a row of the log says that a purge deletes, at once or at any later time.

    Attributes:
        before: the message before which everything goes.
        up_to: the sequence of the snapshot that made it superfluous.
        left: the number of predicted rows that wait no longer.
        kept: the last message of the chain of kept keys that the purge made necessary.
        void: see `LogIndex.void`; the chain of kept keys may have keys that rows among those which
            the purge deletes say are void.
    """

    before: int
    up_to: int
    left: int
    kept: int
    void: Sequence[Sequence[int]] = ()


class LogIndex:
    """The index of one model's log. Used by one thread at a time.

    Attributes:
        segments: of the log, as far as it was not purged.
        keys: sequence -> key, of those that are known.
        unanswered: the sequences of keys without an answer.
        end: the sequence of the last sample.
        reached: the sequence of the last sample that counts: a rollback makes those after it void.
        kept: up to where the chain of kept keys has to be read.
        floor: the message before which all may be purged.
        faults: what cannot be, a sentence for each. A rollback replaces what they are about.
        n_rollbacks: how many were added; purges do not change it.
        deleted: whether the log says that the model was deleted.
        void: after which sequence, and up to which, keys are void: those that were forgotten, and
            those of entries that a rollback says never were learned. No other key will come there.
    """

    def __init__(self, model: int) -> None:
        """Begin before the first commit of a model's log."""
        self._model = model
        self.segments: list[Segment] = []
        self.keys: dict[int, KnownKey] = {}
        self.unanswered: set[int] = set()
        self.end = self.reached = self.kept = self.floor = 0
        self.faults: list[str] = []
        self.n_rollbacks = 0
        self.deleted = False
        self.void: list[tuple[int, int]] = []
        # In the log's order.
        self._events: list[Event] = []
        # After which the next sample comes; None before the first row that says so.
        self._position: int | None = None
        # Whose term it is; None before the first commit that was read.
        self._writer: bytes | None = None
        # Key -> sequence, to recognise one that is committed twice.
        self._sequences: dict[bytes, int] = {}

    def add(self, commit: Commit) -> None:
        """Take the next commit of the log."""
        begins = bool(commit.rows) and commit.rows[0].kind in ("checkpoint", "rollback")
        if begins or not self.segments or self.segments[-1].commits >= _COMMITS_OF_SEGMENT:
            self.segments.append(Segment(commit))
        self.segments[-1].add(commit)
        self._check_writer(commit)
        for row in commit.rows:
            if row.kind in WITH_SAMPLES:
                self._check_samples(row, commit.first)
                self.end = self.reached = self._position = row.sequence
            else:
                self.add_row(row, commit.first)

    def _check_writer(self, commit: Commit) -> None:
        """Note a commit of another writer than the one whose term it is."""
        begins = bool(commit.rows) and commit.rows[0].kind in _BEGIN_A_TERM
        if self.deleted:
            self._note(f"message {commit.first} comes after the deletion of the model")
        elif not begins and self._writer not in (None, commit.writer):
            self._note(
                f"message {commit.first} was written by another replica than the one whose term "
                "it is"
            )
        self._writer = commit.writer

    def _check_samples(self, row: LogRow, message: int) -> None:
        """Note samples that do not come directly after those before them."""
        after = row.sequence - row.samples
        if self._position is not None and after != self._position:
            self._note(
                f"message {message} has the samples after {after}, where those after "
                f"{self._position} should come"
            )

    def _note(self, fault: str) -> None:
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(fault)

    def add_row(self, row: LogRow, place: int, kept: bool = False) -> None:
        """Take a row without samples; entries among them are nothing to remember."""
        if row.kind == "key":
            self._add_key(row, place, kept)
        elif row.kind in ("answer", "shorter"):
            known = self.keys.get(row.sequence)
            if known is not None and (known.answer is None or row.kind == "shorter"):
                self.keys[row.sequence] = known.answered(row, place, kept)
                self.unanswered.discard(row.sequence)
        elif row.kind == "rollback":
            self._add_rollback(row)
        elif row.kind == "epoch":
            self._events.append((row.sequence, json.loads(row.record)["epoch"], None))
        elif row.kind == "created":
            self._position = row.sequence
        elif row.kind == "purged":
            self._add_purge(Purge(**_record(row)))
        elif row.kind == "forgotten":
            self.forget_keys(row.sequence)
        elif row.kind == "deleted":
            self.deleted = True

    def _add_key(self, row: LogRow, place: int, kept: bool) -> None:
        if row.sequence in self.keys or self._is_void(row.sequence):
            return
        request = read_key(self._model, row)
        earlier = self._sequences.get(request.key)
        if earlier is not None and not kept and not self.keys[earlier].kept:
            self._note(
                f"message {place} has an idempotency key at sequence {row.sequence} that was "
                f"committed at {earlier} before"
            )
        self._sequences[request.key] = row.sequence
        self.keys[row.sequence] = KnownKey(request, place, kept=kept)
        self.unanswered.add(row.sequence)

    def _add_rollback(self, row: LogRow) -> None:
        rollback, learned = read_rollback(row)
        self.n_rollbacks += 1
        self._make_void(learned, row.sequence)
        self._events.append((row.sequence, rollback.epoch, rollback))
        self.reached = min(self.reached, row.sequence)
        if self._position is not None:
            self._position = row.sequence
        self.faults.clear()

    def _add_purge(self, purge: Purge) -> None:
        """Forget what a purge deletes, whether that has happened by now or not."""
        self.segments = [
            one
            for one, following in zip(self.segments, [*self.segments[1:], None], strict=True)
            if following is None or following.first > purge.before
        ]
        self._forget_events(purge.up_to)
        self.kept = max(self.kept, purge.kept)
        self.floor = max(self.floor, purge.before)
        for after, up_to in purge.void:
            self._make_void(after, up_to)

    def _forget_events(self, before: int) -> None:
        """Forget what happened before a sequence, but for the epoch that it goes on in."""
        earlier = [event for event in self._events if event[0] < before]
        self._events = [event for event in self._events if event[0] >= before]
        if earlier:  # a term goes on in it, though the row that began it is gone
            at, epoch, _ = max(reversed(earlier), key=lambda event: event[0])
            self._events.insert(0, (at, epoch, None))

    def epoch_since(self, sequence: int) -> str | None:
        """Return the last epoch that began at a sequence or after it."""
        return _last_epoch([event for event in self._events if event[0] >= sequence])

    def epoch_before(self, sequence: int) -> str | None:
        """Return the last epoch that began before a sequence."""
        return _last_epoch([event for event in self._events if event[0] < sequence])

    def last_event(self) -> int:
        """Return the highest sequence that a row without samples has, such as a rollback."""
        of_segments = (one.others for one in self.segments)
        return max([self._position or 0, 0, *(at for at, *_ in self._events), *of_segments])

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
        self._make_void(-1, up_to)

    def _make_void(self, after: int, up_to: int) -> None:
        """Forget the keys after a sequence, up to another one, wherever they are found later."""
        if after >= up_to or (after, up_to) in self.void:
            return
        others = [one for one in self.void if not after <= one[0] <= one[1] <= up_to]
        self.void = [*others, (after, up_to)]
        self._forget([one for one in self.keys if after < one <= up_to])

    def _is_void(self, sequence: int) -> bool:
        return any(after < sequence <= up_to for after, up_to in self.void)

    def _forget(self, sequences: list[int]) -> None:
        for sequence in sequences:
            key = self.keys.pop(sequence).request.key
            if self._sequences.get(key) == sequence:
                del self._sequences[key]
        self.unanswered.difference_update(sequences)


def _record(row: LogRow) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(row.record)
    return fields


def _last_epoch(events: list[Event]) -> str | None:
    """Return the epoch of the highest sequence; of several there the last one."""
    return max(reversed(events), key=lambda event: event[0])[1] if events else None
