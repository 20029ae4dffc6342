"""The interface that tells which replica of a fleet leads a model."""

from collections.abc import Sequence
from typing import Any, Protocol


class Target(Protocol):
    """A replica that calls can be sent to."""

    @property
    def url(self) -> str:
        """Its address."""

    @property
    def secret(self) -> str:
        """The secret that seals requests to it; empty if it serves no views."""


class Director(Protocol):
    """Knows which replica leads a model."""

    def check(self) -> None:
        """Raise NotReady if this replica has not heard enough of its fleet to answer."""

    @property
    def lag_seconds(self) -> float:
        """Seconds since this replica could last hear the others; 0 while it can."""

    def leads(self, name: str) -> bool:
        """Return whether this replica leads a model now."""

    def responsible(self, name: str) -> Target:
        """Return the replica that leads a model or, if none does, should. Raises NotReady."""

    def is_gone(self, replica: Target) -> bool:
        """Return whether a replica has fallen silent."""

    def living(self) -> Sequence[Target]:
        """Return the replicas that were heard lately."""

    def names(self) -> list[str]:
        """Return the names of all models; those that other replicas lead may be a moment old."""

    def is_here(self, replica: Target) -> bool:
        """Return whether a replica is this one."""

    async def lead(self, name: str) -> bool:
        """Let this replica lead a model; return whether the model exists.

        The takeover continues if the caller is cancelled.

        Raises NotLeader, StorageFailed, NotReady.
        """

    def progress(self, name: str) -> str:
        """Return the progress of the takeover of a model, as a text for clients."""

    def describe(self) -> dict[str, Any]:
        """Return what this replica knows of its fleet, as plain data."""

    def suspect(self, replica: Target) -> None:
        """Treat a replica as gone, because no connection to it could be made."""
