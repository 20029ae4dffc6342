"""The interface of the snapshots: saved states of models.

Any thread may use it. `storage.interfaces` has the promises of all durable storage.
"""

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from wolfstream.service.storage.snapshot_format import State

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


class SnapshotDescription(NamedTuple):
    """A snapshot without its arrays."""

    n_bytes: int
    written: datetime  # when it was saved
    plain: dict[str, Any] | None  # see `State`; None if unreadable


class Snapshots(Protocol):
    """Saved states of models, each identified by the sequence at which it was taken."""

    def sequences(self, model: int) -> list[int]:
        """Return the sequences of a model's snapshots, newest first."""

    def name(self, model: int, sequence: int) -> str:
        """Return how messages refer to a snapshot, such as the path of its file."""

    def save(self, model: int, state: State) -> None:
        """Save a state as the snapshot of its sequence; delete the oldest if there are too many.

        Durable on return; if it raises, nothing has changed. Raises OSError.
        """

    def load(self, model: int, sequence: int) -> State:
        """Return a snapshot's state. Raises DamagedSnapshot, also if there is no such snapshot."""

    def content(self, model: int, sequence: int) -> bytes:
        """Return a snapshot as bytes for `snapshot_format.decode_state`. Raises DamagedSnapshot."""

    def written(self, model: int, sequence: int) -> datetime | None:
        """Return when a snapshot was saved; None if there is no such snapshot."""

    def describe(self, model: int, sequence: int) -> SnapshotDescription | None:
        """Return a snapshot without its arrays; None if there is no such snapshot."""

    def set_aside(self, model: int, sequence: int) -> None:
        """Keep a damaged snapshot, but no longer list it."""

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

    def pinned_names(self, model: int) -> list[str]:
        """Return the names of all pinned states of a model. Raises OSError."""

    def unpin(self, model: int, names: Collection[str]) -> None:
        """Delete pinned states of a model. Raises OSError."""

    def delete(self, model: int) -> None:
        """Delete all snapshots of a model."""

    def set_others_aside(self, models: set[int]) -> None:
        """Move the snapshots of all other models to where no new model finds them."""
