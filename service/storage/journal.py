"""The interface of the journal: the logs of all models, and marks of what replays them.

One log is read through a `LogReader` and written through a `Term`. The journal commits what terms
write at the same time. `storage.interfaces` has what all of durable storage promises.
"""

from collections.abc import Mapping
from typing import Protocol

from wolfstream.service.errors import NotLeader, StorageFailed
from wolfstream.service.storage.entries import Rollback
from wolfstream.service.storage.term import Part, Term, UnownedLog


class Unfinished(StorageFailed):
    """A commit is under way: `Journal.finished` returns what became of it."""


class LogFull(StorageFailed):
    """A model's log has no room for samples: a snapshot lets it be purged."""


class LogDeleted(NotLeader):
    """A log ends with the deletion of its model, whose rest is left to do."""


class Replays(Protocol):
    """Marks of replays, which show the next process what an earlier one was replaying as it ended.

    A block that needs more memory than there is would end every process that replays it.

    most: as many processes may end in a replay at one place; the model is left out then.
    """

    most: int

    def begin(self, model: int, after: int) -> int:
        """Mark that a model's entries after a sequence are replayed next.

        Returns how many processes have begun this before and ended without `end`. Raises NotReady
        as `check` does.
        """

    def leave_out(self, model: int, after: int, times: int) -> None:
        """Mark as if this many processes had ended in a model's replay after a sequence."""

    def ended(self, model: int) -> int:
        """Return how many processes have ended in the replay of a model, at one place."""

    def end(self, model: int) -> None:
        """Mark that a model was replayed to its end."""

    def check(self) -> None:
        """Raise NotReady once the process stops: no other block is replayed."""

    def stop(self) -> None:
        """Mark that the process stops by itself, whatever it replays; on any thread."""


class Journal(Protocol):
    """The durable, ordered record of what every model has been asked to learn.

    name: what messages call it, such as the path of its file.
    """

    name: str

    def reader(self, model: int) -> UnownedLog:
        """Return a new reader of a model's log, which has read all that is there now.

        Raises StartupError, StorageFailed.
        """

    def append(
        self, parts: Mapping[Term, Part], patience: float | None = None
    ) -> dict[Term, StorageFailed]:
        """Write one commit; return the terms of which nothing was written, with the reason.

        A term that is not in the result has all its entries and keys of this commit durably, in
        their order and after everything that it wrote before. Of a term in the result there is
        none of them, unless the error is InDoubt: then it may have all of them or none, and
        writes nothing more until its doubt is over. A term that the log refuses is over.

        Args:
            parts: what each term writes.
            patience: the seconds after which terms are given up for now whose part has no answer:
                they are in the result as Unfinished, and write nothing until `finished` returns
                them. None waits for all.
        """

    def finished(self, seconds: float) -> dict[Term, StorageFailed | None]:
        """Return the results of parts that were Unfinished, each once; None for a durable one.

        It waits at most this long until one of them has finished. A term may be over by then.
        """

    def exchange(self, rollbacks: Mapping[Term, Rollback]) -> None:
        """Write rollbacks of two models, both or none; durable on return.

        Each model has learned everything that its log has. One of them follows the other. Raises
        what methods of terms raise.
        """

    @property
    def replays(self) -> Replays:
        """Marks of the replays that processes have begun on this machine."""

    def damage(self) -> list[str]:
        """Return what is wrong with the journal's structure, a line for each fault."""

    def close(self) -> None:
        """Release the journal and the catalogue, which share a connection."""
