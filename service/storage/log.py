"""The interface for reading one model's log.

A `LogReader` never writes, and reading does not change who may write, which takes a `Term`
(`storage.term`). `storage.interfaces` has the promises of all durable storage.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from wolfstream.service.errors import StartupError
from wolfstream.service.storage.entries import Entry, KeyedRequest, Rollback


class LogGap(StartupError):
    """Rows that the reader has yet to read are missing.

    If the writer has purged them meanwhile, a new reader finds everything in the log and in newer
    snapshots. Otherwise they are lost.
    """


class DamagedRecord(LogGap):
    """A record is not what was written.

    Attributes:
        message: the sequence of its message.
    """

    def __init__(self, detail: str, message: int) -> None:
        super().__init__(detail)
        self.message = message


class LoggedKey(NamedTuple):
    """An idempotency key in a log."""

    sequence: int  # of the last sample of its request
    key: bytes
    n_bytes: int | None  # size of the stored response; None if none is stored


class LogReader(ABC):
    """One model's log, up to what was read. Used by one thread at a time.

    Unless stated otherwise, methods raise StartupError if the log is damaged, and StorageFailed
    if it cannot be read now. Only logs that several processes write, or that arrive in messages,
    have faults, losses and deletions, and have to read on.

    Attributes:
        model: the number of the model.
        name: how messages refer to the log.
    """

    model: int
    name: str

    @property
    def faults(self) -> list[str]:
        """Contradictions in the log, one sentence each; empty for a sound log."""
        return []

    @property
    def incomplete(self) -> bool:
        """Whether records are lost that no later rollback replaces, which is a fault."""
        return False

    @property
    def deleted(self) -> bool:
        """Whether the log ends with the deletion of its model, which may be incomplete."""
        return False

    @property
    def n_rollbacks(self) -> int:
        """The number of rollbacks read; 0 for a log that only this process writes.

        It never decreases. A standby starts over when it grows, even if newer snapshots have
        replaced the rollback by then.
        """
        return 0

    def read_on(self) -> None:  # noqa: B027  (nothing to do where each call asks the database)
        """Read what was appended since the last read; a term's own log never grows by this."""

    @abstractmethod
    def blocks(self, after: int) -> Iterator[list[Entry]]:
        """Yield the entries after a sequence in order, a list per block.

        A prediction, fit or checkpoint is a block of its own. Those at the sequence itself are
        included, unless a rollback at this sequence came after them.
        """

    @abstractmethod
    def begin(self) -> int | None:
        """Return the sequence after which the entries begin; None if there are none."""

    @abstractmethod
    def end(self) -> int:
        """Return the sequence of the last sample; 0 if there is none."""

    @abstractmethod
    def last_event(self) -> int:
        """Return the sequence of the last record without samples; 0 if there is none."""

    @abstractmethod
    def epochs(self) -> Iterable[tuple[int, str]]:
        """Return (sequence, epoch) of each epoch that began in the log, by ascending sequence.

        Of several at one sequence, the last one written is the last.
        """

    @abstractmethod
    def rollbacks(self) -> list[Rollback]:
        """Return the rollbacks that later snapshots have not replaced, newest first."""

    @abstractmethod
    def keys(self, after: int = -1) -> Iterator[LoggedKey]:
        """Yield the idempotency keys after a sequence, oldest first."""

    @abstractmethod
    def find(self, sequence: int) -> KeyedRequest | None:
        """Return the keyed request that ends at a sequence, with its response.

        Raises StorageFailed, also if the log is damaged.
        """

    def unanswered(self, after: int) -> list[KeyedRequest]:
        """Return the keyed requests after a sequence whose responses were not stored."""
        without = [key.sequence for key in self.keys(after) if key.n_bytes is None]
        return [request for sequence in without if (request := self.find(sequence))]

    def epoch_since(self, sequence: int) -> str | None:
        """Return the last epoch that began at a sequence or later; None for the model's first."""
        return _last(epoch for at, epoch in self.epochs() if at >= sequence)

    def epoch_before(self, sequence: int) -> str | None:
        """Return the last epoch that began before a sequence: the epoch in which it was written.

        None if the log does not have it (any more): it is then the epoch of the newest snapshot
        before the sequence, or the model's first.
        """
        return _last(epoch for at, epoch in self.epochs() if at < sequence)


def rolled_back_at(log: LogReader) -> int | None:
    """Return the sequence of a log's last rollback; None if later snapshots replaced it."""
    rollbacks = log.rollbacks()
    return rollbacks[0].description["at"] if rollbacks else None


def _last(epochs: Iterable[str]) -> str | None:
    return next(iter(deque(epochs, maxlen=1)), None)
