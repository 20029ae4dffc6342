"""The interface of the catalogue: which models exist.

`storage.interfaces` has what all of durable storage promises.
"""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from wolfstream.service.errors import StorageFailed
from wolfstream.service.storage.entries import CatalogueEntry
from wolfstream.service.storage.term import Term


class NameTaken(StorageFailed):
    """A model of this name exists already."""


class Catalogue(Protocol):
    """The models that exist."""

    def models(self) -> list[CatalogueEntry]:
        """Return all models, oldest first. Raises StartupError."""

    def find(self, name: str) -> CatalogueEntry | None:
        """Return the model of a name; None if there is none. Raises StorageFailed."""

    def is_followed(self, model: int) -> bool:
        """Return whether another model follows this one, as far as that is known without a wait.

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
        """Add a model; the context manager yields the first term of its log.

        The model exists, durably, once the `with` block has ended without an error. Its number is
        durable before the block begins, and is never given again.

        Args:
            name: of the model.
            spec: that it is made with.
            epoch: its first one.
            follows: see `CatalogueEntry`.
            sequence: that it begins with; a snapshot of it must be saved within the block.

        Raises StorageFailed, and NameTaken.
        """

    def delete(self, term: Term) -> None:
        """Remove the model of a term with its log and keys; durable on return.

        The log refuses everything from then on, so nothing is acknowledged that is deleted. Raises
        what methods of terms raise.
        """

    def finish_deletion(self, entry: CatalogueEntry) -> None:
        """Remove a model whose log says that it was deleted, which a crash has left in parts.

        Raises StorageFailed.
        """
