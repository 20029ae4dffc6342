"""The interface of the journal: the logs of all models, and marks of running replays.

A log is read through a `LogReader` and written through a `Term`. The journal commits the parts of
many terms together. `storage.interfaces` has the promises of all durable storage.
"""

from collections.abc import Mapping
from typing import Protocol

from wolfstream.service.errors import NotLeader, StorageFailed
from wolfstream.service.storage.entries import Rollback
from wolfstream.service.storage.term import Part, Term, UnownedLog


class Unfinished(StorageFailed):
    """The result of a commit is not known yet; `Journal.finished` will return it."""


class LogFull(StorageFailed):
    """A model's log has no room for samples until a snapshot allows it to be purged."""


class LogDeleted(NotLeader):
    """A log ends with the deletion of its model, which may be incomplete."""


class Replays(Protocol):
    """Marks of running replays, which tell the next process where an earlier one crashed.

    Without them, a block that needs more memory than the machine has would crash every process
    that replays it, and the server would never start.

    Attributes:
        max_crashes: after this many crashes at one sequence, the model is left out.
    """

    max_crashes: int

    def begin(self, model: int, after: int) -> int:
        """Mark that a model's block after a sequence is replayed next.

        Returns the number of processes that crashed while replaying it. Raises NotReady like
        `check`.
        """

    def leave_out(self, model: int, after: int, crashes: int) -> None:
        """Mark a model as if `crashes` processes had crashed while replaying its block."""

    def crashes(self, model: int) -> int:
        """Return the number of processes that crashed at the marked block of a model."""

    def end(self, model: int) -> None:
        """Mark that a model was replayed to the end of its log."""

    def check(self) -> None:
        """Raise NotReady if the process is stopping: no further block is replayed."""

    def stop(self) -> None:
        """Mark that the process stops normally, so no replay crashed it. Any thread may call it."""


class Journal(Protocol):
    """The durable, ordered record of what every model was asked to learn.

    Attributes:
        name: how messages refer to it, such as the path of its file.
    """

    name: str

    def reader(self, model: int) -> UnownedLog:
        """Return a reader that has read all of a model's present log.

        Raises StartupError, StorageFailed.
        """

    def append(
        self, parts: Mapping[Term, Part], timeout: float | None = None
    ) -> dict[Term, StorageFailed]:
        """Write one commit; return the terms whose parts were not written, with the reasons.

        For a term that is not in the result, the whole part is on disk, after everything that the
        term wrote before. For a term in the result, nothing of the part is on disk, unless the
        error is InDoubt: then all or nothing of it may be, and the term writes nothing more until
        that is resolved. A term that the log refuses is over.

        Args:
            parts: what each term writes.
            timeout: seconds to wait. A term without a result by then is returned as Unfinished,
                and writes nothing until `finished` returns its result. None waits for all.
        """

    def finished(self, timeout: float) -> dict[Term, StorageFailed | None]:
        """Return the results of Unfinished parts, each once; None means durable.

        Waits up to `timeout` seconds for the first result. Its term may be over by then.
        """

    def exchange(self, rollbacks: Mapping[Term, Rollback]) -> None:
        """Write a rollback for each of two models, both or none; durable on return.

        One model follows the other, and both have learned all of their logs. Raises like the
        methods of `Term`.
        """

    @property
    def replays(self) -> Replays:
        """Marks of replays on this machine."""

    def damage(self) -> list[str]:
        """Return the faults in the journal's structure, one line each."""

    def close(self) -> None:
        """Close the journal and the catalogue, which share a connection."""
