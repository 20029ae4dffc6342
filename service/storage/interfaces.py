"""The three interfaces of durable storage, and what all of them promise.

"Durable" means on disk: no crash of the process or the machine undoes it. Writing raises
StorageFailed if nothing was written, and InDoubt if that is unknown. Reading at start raises
StartupError if something is missing or damaged.

Only the writer's thread calls them, except `Snapshots`, which any thread may use. A model is
identified by its number in the catalogue, which is never reused.
"""

import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from wolfstream.service.errors import NotLeader, StorageFailed
from wolfstream.service.storage.crash_marks import ReplayMarks
from wolfstream.service.storage.entries import CatalogueEntry, Rollback
from wolfstream.service.storage.snapshot_format import State, decode_state
from wolfstream.service.storage.term import Part, Term, UnownedLog


class NameTaken(StorageFailed):
    """A model of this name already exists."""


class Catalogue(Protocol):
    """The models that exist."""

    def models(self) -> list[CatalogueEntry]:
        """Return all models, oldest first. Raises StartupError."""

    def find(self, name: str) -> CatalogueEntry | None:
        """Return the model of a name; None if there is none. Raises StorageFailed."""

    def is_followed(self, model: int) -> bool:
        """Return whether a challenger is known to follow this model, without waiting.

        Raises StartupError.
        """

    def creating(
        self,
        name: str,
        spec: dict[str, Any],
        epoch: str,
        follows: int | None = None,
        sequence: int = 0,
    ) -> AbstractContextManager[Term]:
        """Create a model; the context manager yields the first term of its log.

        The model exists durably once the `with` block ends without an error. Its number is reserved
        durably before the block begins and is never reused, so nothing that the block writes under
        it can become another model's.

        Args:
            name: the model's name.
            spec: the model's spec, as plain data.
            epoch: the model's first epoch.
            follows: the number of its champion; see `CatalogueEntry`.
            sequence: the sequence to start from; the block must save a snapshot of it.

        Raises StorageFailed, NameTaken.
        """

    def delete(self, term: Term) -> None:
        """Delete the model of a term with its log and keys; durable on return.

        The log refuses everything from then on, so nothing that is deleted is acknowledged. Raises
        like the methods of `Term`.
        """

    def finish_deletion(self, entry: CatalogueEntry) -> None:
        """Delete the rest of a model whose deletion a crash interrupted. Raises StorageFailed."""


class Unfinished(StorageFailed):
    """The result of a commit is not known yet; `Journal.finished` will return it."""


class LogFull(StorageFailed):
    """A model's log has no room for samples until a snapshot allows it to be purged."""


class LogDeleted(NotLeader):
    """A log ends with the deletion of its model, which may be incomplete."""


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
    def replays(self) -> ReplayMarks:
        """Marks of replays on this machine."""

    def damage(self) -> list[str]:
        """Return the faults in the journal's structure, one line each."""

    def obstacle(self) -> str:
        """Return why it would refuse a commit now, as far as that shows without one; "" if not.

        Health checks say it, which need no key: so it has no path, name or address. Any thread may
        call it.
        """

    def close(self) -> None:
        """Close the journal and the catalogue, which share a connection."""


# Hex digits of the digest in a pinned state's name, and random bytes that make the name unique.
DIGITS, _UNIQUE_BYTES = 32, 4


def new_pinned_name(content: bytes) -> str:
    """Return a new name for a state to be pinned: its digest and a random part."""
    return f"{_digest(content)}-{secrets.token_hex(_UNIQUE_BYTES)}"


def matches_pinned_name(name: str, content: bytes) -> bool:
    """Return whether bytes have the digest in a pinned state's name."""
    return name.partition("-")[0] == _digest(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


# Why a model is recovered without a snapshot for good: what its name says once it is set aside.
SnapshotFault: TypeAlias = Literal["damaged", "of-another-model", "of-another-version"]


class SnapshotDescription(NamedTuple):
    """A snapshot without its arrays."""

    n_bytes: int
    written: datetime  # when it was saved
    plain: dict[str, Any] | None  # see `State`; None if unreadable


class Snapshots(ABC):
    """Saved states of models, each identified by the sequence at which it was taken."""

    @abstractmethod
    def sequences(self, model: int) -> list[int]:
        """Return the sequences of a model's snapshots, newest first."""

    @abstractmethod
    def name(self, model: int, sequence: int) -> str:
        """Return how messages refer to a snapshot, such as the path of its file."""

    @abstractmethod
    def save(self, model: int, state: State) -> None:
        """Save a state as the snapshot of its sequence; delete the oldest if there are too many.

        Durable on return; if it raises, nothing has changed. Raises OSError.
        """

    def load(self, model: int, sequence: int) -> State:
        """Return a snapshot's state. Raises DamagedSnapshot, also if there is no such snapshot."""
        return decode_state(self.content(model, sequence), self.name(model, sequence))

    @abstractmethod
    def content(self, model: int, sequence: int) -> bytes:
        """Return a snapshot as bytes for `snapshot_format.decode_state`. Raises DamagedSnapshot."""

    @abstractmethod
    def written(self, model: int, sequence: int) -> datetime | None:
        """Return when a snapshot was saved; None if there is no such snapshot."""

    @abstractmethod
    def describe(self, model: int, sequence: int) -> SnapshotDescription | None:
        """Return a snapshot without its arrays; None if there is no such snapshot."""

    @abstractmethod
    def set_aside(self, model: int, sequence: int, fault: SnapshotFault) -> None:
        """Keep a snapshot under a name that says its fault, but no longer list it."""

    @abstractmethod
    def pin(self, model: int, content: bytes, name: str | None = None) -> str:
        """Save the bytes of a snapshot for a rollback, and return their name; durable on return.

        Args:
            model: the model whose state it is.
            content: the bytes.
            name: the name under which they were pinned elsewhere. None makes a new name, so that
                unpinning an older state never hits a newer one, however late it happens.

        Raises OSError.
        """

    def pinned(self, model: int, name: str) -> State:
        """Return the state that was pinned under a name. Raises DamagedSnapshot."""
        return decode_state(self.pinned_content(model, name), name)

    @abstractmethod
    def pinned_content(self, model: int, name: str) -> bytes:
        """Return the bytes that were pinned under a name. Raises DamagedSnapshot."""

    @abstractmethod
    def pinned_names(self, model: int) -> list[str]:
        """Return the names of all pinned states of a model. Raises OSError."""

    @abstractmethod
    def unpin(self, model: int, names: Collection[str]) -> None:
        """Delete pinned states of a model. Raises OSError."""

    @abstractmethod
    def delete(self, model: int) -> None:
        """Delete all snapshots of a model."""

    def set_others_aside(self, models: set[int]) -> None:  # noqa: B027
        """Move the snapshots of all other models to where no new model finds them.

        There is nothing to do where a new model gets a number that no model has had before.
        """


class Storage(NamedTuple):
    """The storage of one server."""

    journal: Journal
    catalogue: Catalogue
    snapshots: Snapshots

    def close(self) -> None:
        """Close the journal, and the catalogue with it."""
        self.journal.close()
