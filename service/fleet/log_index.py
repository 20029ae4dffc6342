"""In-memory index of one model's log: where its commits and idempotency keys are.

Up to 64 consecutive commits form a segment, the unit of purging, so even a log with one commit per
sample has a small index. A checkpoint or a rollback begins a new segment: its state may replace
everything before it. The last segment is never purged.

The index also records faults, which a sound log cannot have: samples that do not follow the ones
before them, a key that was committed twice, a commit of a writer whose term is over.

It holds no samples, and does not notice missing messages: `Chain` does, and reports them.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from wolfstream.service.fleet.commit_messages import LogRow, read_key, read_rollback
from wolfstream.service.storage.entries import KeyedRequest, Rollback

_COMMITS_OF_SEGMENT = 64
WITH_SAMPLES = frozenset({"samples", "labels"})
ENTRIES = WITH_SAMPLES | {"prediction", "fit", "checkpoint"}
# Kinds of rows that are not part of a model's state, so no snapshot replaces them.
_WITHOUT_STATE = frozenset(
    {"key", "answer", "shorter", "created", "purged", "forgotten", "unpinned", "deleted"}
)
# Kinds of rows that begin a term, and so a new writer.
_BEGIN_A_TERM = frozenset({"created", "epoch"})
# Further faults are not recorded: a forked log may have one for each commit.
_MAX_FAULTS = 10


class Commit(NamedTuple):
    """A commit in a log; messages are identified by their sequences in the stream."""

    previous: int  # the message before its first
    first: int  # its first message
    last: int  # its last message
    writer: bytes  # the writer's name, the same for all commits of a term
    rows: list[LogRow]


class Segment:
    """Consecutive commits.

    Attributes:
        previous: the message before the first commit.
        first: the first message.
        commits: number of commits.
        begin: sequence just before its first sample; None without samples.
        samples: highest sequence of a row with samples; -1 without such a row, as for the next
            three.
        others: highest sequence of a row that a snapshot of a later sequence replaces.
        predictions: highest sequence of a prediction.
        highest_row: highest number of a predicted row; see `storage.entries`.
    """

    def __init__(self, commit: Commit) -> None:
        self.previous, self.first = commit.previous, commit.first
        self.commits = 0
        self.begin: int | None = None
        self.samples = self.others = self.predictions = self.highest_row = -1

    def add(self, commit: Commit) -> None:
        """Add the next commit."""
        self.commits += 1
        for row in commit.rows:
            if row.kind in WITH_SAMPLES:
                if self.begin is None:
                    self.begin = row.sequence - row.samples
                self.samples = max(self.samples, row.sequence)
            elif row.kind == "prediction":
                self.predictions = max(self.predictions, row.sequence)
                self.highest_row = max(self.highest_row, row.block)
            elif row.kind not in _WITHOUT_STATE:
                self.others = max(self.others, row.sequence)

    def is_superfluous(self, up_to: int, received: int) -> bool:
        """Return whether a snapshot replaces the whole segment.

        Args:
            up_to: sequence of the snapshot.
            received: number of a predicted row; no row up to this one waits for a label.
        """
        no_row_waits = self.predictions < up_to or self.highest_row <= received
        return no_row_waits and self.samples <= up_to and self.others < up_to

    def matters_after(self, sequence: int) -> bool:
        """Return whether a replay after a sequence may need the segment."""
        return self.samples > sequence or max(self.others, self.predictions) >= sequence


class IndexedKey(NamedTuple):
    """A keyed request, and the messages that have its key and its response."""

    request: KeyedRequest
    place: int  # the first message that has the key or the response
    answer: int | None = None  # the message that has the response; None without a response
    n_bytes: int = 0  # size of the response
    archived: bool = False  # whether these messages are in the archive, not in the log

    def with_answer(self, row: LogRow, place: int, archived: bool) -> "IndexedKey":
        """Return the key with the message that has its response."""
        first = place if self.archived or archived else self.place
        return IndexedKey(self.request, first, place, len(row.record), archived)


# (sequence at which an epoch began, the epoch, the rollback that it began with or None).
Event: TypeAlias = tuple[int, str, Rollback | None]


class Purge(NamedTuple):
    """The record of a purge: what is deleted, now or at any later time.

    Attributes:
        before: messages before this one are deleted.
        up_to: sequence of the snapshot that replaces them.
        left: number of a predicted row; no row up to this one waits for a label.
        kept: the last message of the archive that was written for the purge.
        void: see `LogIndex.void`. The rows that made these keys void are deleted, but the archive
            may still have the keys.
    """

    before: int
    up_to: int
    left: int
    kept: int
    void: Sequence[Sequence[int]] = ()


class LogIndex:
    """The index of one model's log. Used by one thread at a time.

    Attributes:
        segments: the segments of the log that were not purged.
        keys: sequence -> key, in the log or in the archive.
        end: sequence of the last sample.
        reached: sequence of the last valid sample: a rollback makes later samples void.
        archive_end: the message up to which the archive has to be read.
        floor: messages before this one may be purged.
        faults: one sentence for each fault. A rollback clears them: it replaces the faulty entries.
        incomplete: whether one of the faults is that messages are lost.
        n_rollbacks: number of rollbacks, including purged ones.
        deleted: whether the log says that the model was deleted.
        void: (after, up_to) ranges of sequences whose keys are void: they were forgotten, or a
            rollback says that their entries were never learned. They will get no other keys.
    """

    def __init__(self, model: int) -> None:
        """Begin before the first commit of a model's log."""
        self._model = model
        self.segments: list[Segment] = []
        self.keys: dict[int, IndexedKey] = {}
        self.end = self.reached = self.archive_end = self.floor = 0
        self.faults: list[str] = []
        self.incomplete = False
        self.n_rollbacks = 0
        self.deleted = False
        self.void: list[tuple[int, int]] = []
        self._events: list[Event] = []  # in the order of the log
        # Sequence after which the next sample must come; None until a row determines it.
        self._position: int | None = None
        # Writer of the current term; None before the first commit.
        self._writer: bytes | None = None
        # key -> sequence, to notice a key that was committed twice.
        self._sequences: dict[bytes, int] = {}

    def add(self, commit: Commit) -> None:
        """Add the next commit of the log."""
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
        """Record a fault for a commit of a writer whose term is over."""
        begins = bool(commit.rows) and commit.rows[0].kind in _BEGIN_A_TERM
        if self.deleted:
            self._add_fault(f"message {commit.first} comes after the deletion of the model")
        elif not begins and self._writer not in (None, commit.writer):
            self._add_fault(
                f"message {commit.first} was written by another replica than the one whose term "
                "it is"
            )
        self._writer = commit.writer

    def _check_samples(self, row: LogRow, message: int) -> None:
        """Record a fault for samples that do not directly follow the ones before them."""
        after = row.sequence - row.samples
        if self._position is not None and after != self._position:
            self._add_fault(
                f"message {message} has the samples after {after}, where those after "
                f"{self._position} should come"
            )

    def add_loss(self, loss: str) -> None:
        """Record a fault: messages before the next commit are lost."""
        self.incomplete = True
        if loss not in self.faults:
            self._add_fault(loss)

    def _add_fault(self, fault: str) -> None:
        if len(self.faults) < _MAX_FAULTS:
            self.faults.append(fault)

    def add_row(self, row: LogRow, place: int, archived: bool = False) -> None:
        """Add a row without samples; nothing is indexed of an entry.

        Args:
            row: the row.
            place: the first message of its commit.
            archived: whether the row is in the archive, not in the log.
        """
        if row.kind == "key":
            self._add_key(row, place, archived)
        elif row.kind in ("answer", "shorter"):
            key = self.keys.get(row.sequence)
            if key is not None and (key.answer is None or row.kind == "shorter"):
                self.keys[row.sequence] = key.with_answer(row, place, archived)
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

    def _add_key(self, row: LogRow, place: int, archived: bool) -> None:
        if row.sequence in self.keys or self._is_void(row.sequence):
            return
        request = read_key(self._model, row)
        earlier = self._sequences.get(request.key)
        if earlier is not None and not archived and not self.keys[earlier].archived:
            self._add_fault(
                f"message {place} has an idempotency key at sequence {row.sequence} that was "
                f"committed at {earlier} before"
            )
        self._sequences[request.key] = row.sequence
        self.keys[row.sequence] = IndexedKey(request, place, archived=archived)

    def _add_rollback(self, row: LogRow) -> None:
        rollback, learned = read_rollback(row)
        self.n_rollbacks += 1
        self._make_void(learned, row.sequence)
        self._events.append((row.sequence, rollback.epoch, rollback))
        self.reached = min(self.reached, row.sequence)
        if self._position is not None:
            self._position = row.sequence
        self.faults.clear()
        self.incomplete = False

    def _add_purge(self, purge: Purge) -> None:
        """Forget what a purge deletes, even if it is not deleted yet."""
        self.segments = [
            segment
            for segment, following in zip(self.segments, [*self.segments[1:], None], strict=True)
            if following is None or following.first > purge.before
        ]
        self._forget_events(purge.up_to)
        self.archive_end = max(self.archive_end, purge.kept)
        self.floor = max(self.floor, purge.before)
        for after, up_to in purge.void:
            self._make_void(after, up_to)

    def _forget_events(self, before: int) -> None:
        """Forget the events before a sequence, except the epoch that was current there."""
        earlier = [event for event in self._events if event[0] < before]
        self._events = [event for event in self._events if event[0] >= before]
        if earlier:  # this epoch continues, although the row that began it is deleted
            at, epoch, _ = max(reversed(earlier), key=lambda event: event[0])
            self._events.insert(0, (at, epoch, None))

    def epochs(self) -> list[tuple[int, str]]:
        """Return (sequence, epoch) of each epoch that began, by ascending sequence."""
        return sorted(((at, epoch) for at, epoch, _ in self._events), key=lambda event: event[0])

    def last_event(self) -> int:
        """Return the highest sequence of a row without samples, such as a rollback."""
        in_segments = (segment.others for segment in self.segments)
        return max([self._position or 0, 0, *(at for at, *_ in self._events), *in_segments])

    def rollbacks(self) -> list[Rollback]:
        """Return the rollbacks, newest first."""
        return [rollback for *_, rollback in reversed(self._events) if rollback is not None]

    def begin(self) -> int | None:
        """Return the sequence just before the first sample; None without samples."""
        begins = (segment.begin for segment in self.segments if segment.begin is not None)
        return next(begins, None)

    def before(self, sequence: int) -> int:
        """Return the message after which a replay after a sequence must start to read."""
        needed = (segment.previous for segment in self.segments if segment.matters_after(sequence))
        last = self.segments[-1].previous if self.segments else 0
        return next(needed, last)

    def superfluous(self, up_to: int, received: int) -> tuple[list[Segment], int]:
        """Return the segments that a purge may delete, and the first message after them.

        Args:
            up_to: see `Segment.is_superfluous`.
            received: see `Segment.is_superfluous`.
        """
        superfluous = list[Segment]()
        for segment, following in zip(self.segments, self.segments[1:], strict=False):
            if not segment.is_superfluous(up_to, received):
                return superfluous, segment.first
            superfluous.append(segment)
            after = following.first
        return superfluous, after if superfluous else 0

    def add_archived(self, commit: Commit) -> None:
        """Add a commit of the archive, whose keys and responses replace those in the log."""
        for row in commit.rows:
            self.add_row(row, commit.first, archived=True)
            if row.sequence in self.keys:
                key = self.keys[row.sequence]
                self.keys[row.sequence] = key._replace(place=commit.first, archived=True)

    def keys_before(self, message: int) -> list[IndexedKey]:
        """Return the keys that have a row in the log before a message."""
        return [key for key in self.keys.values() if not key.archived and key.place < message]

    def forget_keys(self, up_to: int) -> None:
        """Forget the keys of entries up to a sequence."""
        self._make_void(-1, up_to)

    def _make_void(self, after: int, up_to: int) -> None:
        """Forget the keys in a range of sequences, including any that are read later."""
        if after >= up_to or (after, up_to) in self.void:
            return
        others = [(low, high) for low, high in self.void if not after <= low <= high <= up_to]
        self.void = [*others, (after, up_to)]
        self._forget([sequence for sequence in self.keys if after < sequence <= up_to])

    def _is_void(self, sequence: int) -> bool:
        return any(after < sequence <= up_to for after, up_to in self.void)

    def _forget(self, sequences: list[int]) -> None:
        for sequence in sequences:
            key = self.keys.pop(sequence).request.key
            if self._sequences.get(key) == sequence:
                del self._sequences[key]


def _record(row: LogRow) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(row.record)
    return fields
