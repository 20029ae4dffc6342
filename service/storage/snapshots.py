"""The interface of the snapshots: the saved states of models.

Any thread may use it. `storage.interfaces` has what all of durable storage promises.
"""

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from wolfstream.service.storage.snapshot_format import State

# The characters of a digest in the name of a pinned state, and the bytes that make it unique.
DIGITS, _UNIQUE_BYTES = 32, 4


def pinned_name(content: bytes) -> str:
    """Return a new name for a pinned state, which begins with its digest."""
    return f"{_digest(content)}-{secrets.token_hex(_UNIQUE_BYTES)}"


def is_content_of(name: str, content: bytes) -> bool:
    """Return whether bytes are those that were pinned under a name."""
    return name.partition("-")[0] == _digest(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


class SnapshotDescription(NamedTuple):
    """A snapshot without its arrays.

    n_bytes: its size. written: when it was saved. plain: `State.plain`; None if unreadable.
    """

    n_bytes: int
    written: datetime
    plain: dict[str, Any] | None


class Snapshots(Protocol):
    """Saved states of models, each known by the sequence at which it was taken."""

    def sequences(self, model: int) -> list[int]:
        """Return sequences of a model's kept snapshots, newest first."""

    def name(self, model: int, sequence: int) -> str:
        """Return what messages call a snapshot, such as the path of its file."""

    def save(self, model: int, state: State) -> None:
        """Keep a state as the snapshot of its sequence, and forget the oldest if too many.

        Durable on return; otherwise nothing has changed. Raises OSError.
        """

    def load(self, model: int, sequence: int) -> State:
        """A snapshot's state. Raises DamagedSnapshot, also where there is no such snapshot."""

    def content(self, model: int, sequence: int) -> bytes:
        """A snapshot as bytes, which `snapshot_format.decode` reads. Raises DamagedSnapshot."""

    def written(self, model: int, sequence: int) -> datetime | None:
        """Return when a snapshot was saved; None if there is no such snapshot."""

    def describe(self, model: int, sequence: int) -> SnapshotDescription | None:
        """Return what is known about a snapshot without its arrays; None if there is none."""

    def set_aside(self, model: int, sequence: int) -> None:
        """Keep a damaged snapshot where it is no longer counted as one."""

    def pin(self, model: int, content: bytes, name: str | None = None) -> str:
        """Keep the bytes of a snapshot for a rollback, and return their name; durable on return.

        Args:
            model: whose state it is.
            content: the bytes.
            name: under which they were pinned elsewhere; None makes a name that never was used,
                so that unpinning another state is right however late it comes.

        Raises OSError.
        """

    def pinned(self, model: int, name: str) -> State:
        """Return the state that was pinned under a name. Raises DamagedSnapshot."""

    def pinned_names(self, model: int) -> list[str]:
        """Return the names of all pinned states of a model. Raises OSError."""

    def unpin(self, model: int, names: Collection[str]) -> None:
        """Delete pinned states of a model. Raises OSError."""

    def delete(self, model: int) -> None:
        """Forget all snapshots of a model."""

    def set_others_aside(self, models: set[int]) -> None:
        """Keep the snapshots of all other models where a new model does not find them."""
