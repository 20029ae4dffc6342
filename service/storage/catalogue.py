"""The interface of the catalogue: which models exist.

`storage.interfaces` has what all of durable storage promises.
"""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from service.errors import StorageFailed
from service.storage.entries import CatalogueEntry


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
        self, name: str, spec: dict[str, Any], epoch: str, follows: int | None = None
    ) -> AbstractContextManager[int]:
        """Add a model, whose number the context manager yields: it is given once, for good.

        epoch: the first one of the model. follows: see `CatalogueEntry`.

        The model exists, durably, once the `with` block has ended without an error. Raises
        StorageFailed, and NameTaken.
        """

    def delete(self, model: int) -> None:
        """Remove a model with its entries and keys; durable on return. Raises StorageFailed."""
