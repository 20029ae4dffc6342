"""The interface of the catalogue, which lists the models that exist.

`storage.interfaces` has the promises of all durable storage.
"""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from wolfstream.service.errors import StorageFailed
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.term import Term


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
