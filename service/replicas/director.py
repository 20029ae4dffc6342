"""The interface that says which replica of a fleet leads a model."""

from collections.abc import Sequence
from typing import Any, Protocol


class Target(Protocol):
    """A replica.

    url: its address. secret: with which the others seal questions to it; empty if it serves no
    views.
    """

    @property
    def url(self) -> str:
        """The address for calls."""

    @property
    def secret(self) -> str:
        """The secret that seals questions to it."""


class Director(Protocol):
    """Knows which replica leads a model."""

    def check(self) -> None:
        """Raise NotReady if this replica knows too little of its fleet to answer."""

    @property
    def lag_seconds(self) -> float:
        """The seconds since this replica could have heard of the others; 0 if it can now."""

    def leads(self, name: str) -> bool:
        """Return whether this replica learns a model now."""

    def responsible(self, name: str) -> Target:
        """Return the replica that leads a model, or should lead it. Raises NotReady."""

    def is_gone(self, replica: Target) -> bool:
        """Return whether a replica has fallen silent."""

    def living(self) -> Sequence[Target]:
        """Return the replicas that were heard lately."""

    def names(self) -> list[str]:
        """Return the names of all models, some moments old of those that others lead."""

    def is_here(self, replica: Target) -> bool:
        """Return whether a replica is this one."""

    async def lead(self, name: str) -> bool:
        """Lead a model; return whether it exists. Raises NotLeader, StorageFailed, NotReady.

        It goes on where the caller stops waiting for it.
        """

    def progress(self, name: str) -> str:
        """Return how far a model is that this replica begins to lead, as a client is told."""

    def describe(self) -> dict[str, Any]:
        """Return what this replica knows of its fleet, as plain data."""

    def partitions(self, name: str) -> list[str]:
        """Return the partitions of a model with several learners; none of another one."""

    def partitioned_model(self, name: str) -> str | None:
        """Return the model that a partition belongs to; None for what is no partition."""

    def suspect(self, replica: Target) -> None:
        """Treat a replica as gone because no connection to it could be made."""
