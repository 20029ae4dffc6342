"""The interface of one model's log, as it is read.

A `LogReader` has no method that writes, and what it reads never changes what may be written. A
`Term` alone writes (`storage.term`).

`storage.interfaces` has what all of durable storage promises.
"""

from collections.abc import Iterator
from typing import Protocol

from wolfstream.service.errors import StartupError
from wolfstream.service.storage.entries import Entry, KeyedRequest, Rollback


class LogGap(StartupError):
    """A log lacks rows that a reader has not read.

    Whoever writes it may have purged them since: then the log, with newer snapshots, has everything
    for those who read it anew. Otherwise they are lost.
    """


class LogReader(Protocol):
    """One model's log, up to where it was read. Used by one thread at a time.

    Where nothing else is said, methods raise StartupError if the log is damaged, and StorageFailed
    if it cannot be read now.

    Attributes:
        model: the number of the model.
        name: what messages call the log.
        faults: what cannot be in a log, and is; one sentence for each. Empty of a sound log.
        deleted: whether the model was deleted; then only the rest of its deletion is left to do.
        n_rollbacks: how many rollbacks were read so far; 0 of a log that only this process writes.
            It never sinks: whoever learns what another replica writes begins anew where it has
            risen, also where later snapshots have replaced the rollback by then.
    """

    model: int
    name: str

    @property
    def faults(self) -> list[str]:
        """What the log has that cannot be, a sentence for each."""

    @property
    def deleted(self) -> bool:
        """Whether the log ends with the deletion of its model."""

    @property
    def n_rollbacks(self) -> int:
        """How many rollbacks were read so far, those included that are not needed any more."""

    def read_on(self) -> None:
        """Read what has come since the last read. The log of a term does not grow by reading."""

    def blocks(self, after: int) -> Iterator[list[Entry]]:
        """Yield the entries after a sequence, block by block in their order.

        Predictions, fits and checkpoints are blocks of their own. Those at the sequence itself are
        among them, if they came after a rollback there.
        """

    def begin(self) -> int | None:
        """Return the sequence after which the entries begin; None if there are none."""

    def end(self) -> int:
        """Return the sequence of the last sample; 0 if there is none."""

    def last_event(self) -> int:
        """Return the sequence of the last record that has no samples; 0 if there is none."""

    def epoch_since(self, sequence: int) -> str | None:
        """Return the last epoch that began at a sequence or later, except the first one."""

    def epoch_before(self, sequence: int) -> str | None:
        """Return the last epoch that began before a sequence: that in which it was written.

        None where the log does not have it, or not any more: it is that of the newest snapshot
        before, or the model's first one.
        """

    def rolled_back_at(self) -> int | None:
        """Return the sequence of the last rollback; None if later snapshots replaced it."""

    def rollbacks(self) -> list[Rollback]:
        """Return the rollbacks that later snapshots have not replaced, the last one first."""

    def keys(self) -> Iterator[tuple[int, bytes]]:
        """Yield (sequence, key) of the idempotency keys, oldest first."""

    def sizes(self, above: int) -> Iterator[tuple[int, int]]:
        """Yield (sequence, bytes) of the answers of more bytes than a number, oldest first."""

    def find(self, sequence: int) -> KeyedRequest | None:
        """Return the key of the entry at a sequence, with its answer. Raises StorageFailed."""

    def unanswered(self, after: int) -> list[KeyedRequest]:
        """Return the keys after a sequence whose answers were not written."""
