"""The interface of the idempotency keys and the answers to their requests.

`storage.interfaces` has what all of durable storage promises.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from service.storage.entries import KeyedRequest


class Answers(Protocol):
    """The idempotency keys that the journal took, and the answers to their requests."""

    def keys(self, model: int) -> Iterator[tuple[int, bytes]]:
        """(sequence, key) of a model's keys, oldest first. Raises StartupError."""

    def sizes(self, model: int, above: int) -> Iterator[tuple[int, int]]:
        """(sequence, bytes) of a model's answers of more bytes than a number, oldest first.

        Raises StartupError.
        """

    def find(self, model: int, sequence: int) -> KeyedRequest | None:
        """Return the key of the entry at a sequence. Raises StorageFailed."""

    def unanswered(self, model: int, after: int) -> list[KeyedRequest]:
        """A model's keys after a sequence whose answers were not written. Raises StartupError."""

    def write(self, answered: Sequence[KeyedRequest]) -> None:
        """Write the answers of keys that are there; durable on return. Raises StorageFailed.

        Of a key that has an answer, that one stays.
        """

    def replace(self, shorter: Sequence[KeyedRequest]) -> None:
        """Forget the answers of keys that are there, and write these. Raises StorageFailed."""

    def drop(self, model: int, up_to: int) -> None:
        """Forget the keys of a model's entries up to a sequence. Raises StorageFailed."""
