"""The interface of the journal: the log of every model, and marks of what replays it.

`storage.interfaces` has what all of durable storage promises.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from service.errors import StorageFailed
from service.storage.entries import Entry, KeyedRequest, Rollback


class Unfinished(StorageFailed):
    """A commit is on its way: `Journal.finished` returns what became of it."""


class LogFull(StorageFailed):
    """A model's log has no room for samples: a snapshot lets it be purged."""


class Replays(Protocol):
    """Marks of replays, which show the next process what an earlier one was replaying as it ended.

    A block that needs more memory than there is would end every process that replays it.

    most: as many processes may end in a replay at one place; the model is left out then.
    """

    most: int

    def begin(self, model: int, after: int) -> int:
        """Mark that a model's entries after a sequence are replayed next.

        Returns how many processes have begun this before and ended without `end`.
        """

    def leave_out(self, model: int, after: int, times: int) -> None:
        """Mark as if this many processes had ended in a model's replay after a sequence."""

    def ended(self, model: int) -> int:
        """Return how many processes have ended in the replay of a model, at one place."""

    def end(self, model: int) -> None:
        """Mark that a model was replayed to its end."""

    def stop(self) -> None:
        """Mark that the process stops by itself, whatever it replays; on any thread."""


class Journal(Protocol):
    """The durable, ordered record of what every model has been asked to learn.

    name: what messages call it, such as the path of its file.
    """

    name: str

    def append(
        self,
        entries: Sequence[Entry],
        keys: Sequence[KeyedRequest] = (),
        patience: float | None = None,
    ) -> dict[int, StorageFailed]:
        """Write one commit; the models of which nothing was written, with the reason.

        A model that is not in the result has all its entries and keys of this commit durably, in
        their order and after everything that was appended before. Of a model in the result there
        is none of them, unless the error is InDoubt: then it may have all of them or none, and
        everything that is appended to it fails until `settle` returns.

        entries: of any number of models, each model's in ascending order of sequences. A
            prediction, a fit or a checkpoint comes after everything else at its sequence.
        keys: those of the entries, without answers, and earlier ones whose answers are known by
            now.
        patience: the seconds after which models are given up for now whose part of the commit has
            no answer: they are in the result as Unfinished, and are not to be used until `finished`
            returns them. None waits for all.
        """

    def finished(self, seconds: float) -> dict[int, StorageFailed | None]:
        """Return the results of commits that were Unfinished, each once; None for a durable one.

        It waits at most this long until one of them has finished.
        """

    def reread(self, model: int, /) -> None:
        """Forget what is known about a model's log, to which others may have written since.

        A replica that learns the model from now on reads the whole log.
        """

    def settle(self, model: int, /) -> None:
        """Find out what became of a model's commit in doubt.

        On return the doubt is over: `blocks` yields all of the commit's entries or none of them,
        and that does not change any more. Raises StorageFailed while it cannot be known.
        """

    def append_rollback(self, model: int, rollback: Rollback, learned: int) -> None:
        """Write a rollback after everything else of its model; durable on return.

        learned: the sequence up to which the model has learned its entries. What comes after it
        will never be learned, so the keys of these entries are forgotten. Raises StorageFailed.
        """

    def append_exchange(self, rollbacks: Mapping[int, Rollback]) -> None:
        """Write rollbacks of several models, all of them or none; durable on return.

        Each model has learned everything that the journal has of it. One of them follows the
        other. Raises StorageFailed, and InDoubt where all of them may have been written.
        """

    def append_epoch(self, model: int, sequence: int, epoch: str) -> None:
        """Write that another epoch begins; durable on return.

        Nothing is appended any more by those who have not read it. Raises StorageFailed, and
        NotLeader where the log has something that was not read here.
        """

    def epoch_since(self, model: int, sequence: int) -> str | None:
        """Return the last epoch that began at a sequence or later, except the model's first one.

        Raises StartupError.
        """

    def epoch_before(self, model: int, sequence: int) -> str | None:
        """Return the last epoch that began before a sequence: that in which it was written.

        None where the journal does not have it, or not any more: it is that of the newest snapshot
        before, or the model's first one. Raises StartupError.
        """

    def blocks(self, model: int, after: int) -> Iterator[list[Entry]]:
        """Yield a model's entries after a sequence, block by block in their order.

        Predictions, fits and checkpoints are blocks of their own. Those at the sequence itself are
        among them, if they came after a rollback there. Raises StartupError.
        """

    def begin(self, model: int) -> int | None:
        """Return the sequence after which a model's entries begin; None if it has none."""

    def end(self, model: int) -> int:
        """Return the sequence of a model's last sample in the journal; 0 if it has none."""

    def acknowledged(self, model: int) -> int:
        """Return the sequence up to which a model was durable, known from outside the journal.

        It is at most the true one; 0 where nothing is known.
        """

    def begin_at(self, model: int, sequence: int) -> None:
        """Note that a new model begins with a snapshot of this sequence."""

    @property
    def replays(self) -> Replays:
        """Marks of the replays that processes have begun on this machine."""

    def rolled_back_at(self, model: int) -> int | None:
        """Return the sequence of a model's last rollback; None if later snapshots replaced it."""

    def rollbacks(self, model: int) -> list[Rollback]:
        """Return a model's rollbacks that later snapshots have not replaced, the last one first.

        Raises StartupError.
        """

    def drop(self, model: int, up_to: int) -> None:
        """Forget what a snapshot at a sequence makes superfluous, keys excepted.

        Those are entries up to the sequence, and predictions, fits, checkpoints,
        rollbacks and epochs before it. Raises StorageFailed.
        """

    def drop_predictions(self, model: int, up_to: int) -> None:
        """Forget predictions up to one, counted in rows, of which none waits any longer.

        Where no sample comes, no snapshot has a later sequence: `drop` would let them grow without
        a bound. Raises StorageFailed.
        """

    def damage(self) -> list[str]:
        """Return what is wrong with the journal's structure, a line for each fault."""

    def close(self) -> None:
        """Release the journal, the catalogue and the answers, which share a connection."""
