"""Which replica of a fleet leads a model, as those ask who pass calls on or follow views."""

from collections.abc import Sequence
from typing import Any, Protocol


class Target(Protocol):
    """A replica.

    url: at which it is reached. word: by which it knows the others; empty of one that gives no
    views.
    """

    @property
    def url(self) -> str:
        """Where calls are sent."""

    @property
    def word(self) -> str:
        """What seals questions to it."""


class Director(Protocol):
    """Who knows which replica leads a model."""

    def check(self) -> None:
        """Raise NotReady where this replica knows too little of its fleet to answer."""

    @property
    def lag_seconds(self) -> float:
        """For how long this replica has known nothing of the others."""

    def leads(self, name: str) -> bool:
        """Whether this replica learns a model now."""

    def responsible(self, name: str) -> Target:
        """The replica that leads a model, or is to lead it. Raises NotReady."""

    def is_gone(self, replica: Target) -> bool:
        """Whether a replica is not heard any more."""

    def living(self) -> Sequence[Target]:
        """The replicas that are heard."""

    async def names(self) -> list[str]:
        """The names of all models. Raises StorageFailed."""

    def is_here(self, replica: Target) -> bool:
        """Whether a replica is this one."""

    async def lead(self, name: str) -> bool:
        """Lead a model; whether there is one. Raises NotLeader, StorageFailed, NotReady."""

    def describe(self) -> dict[str, Any]:
        """The fleet as this replica sees it, as plain data."""

    def suspect(self, replica: Target) -> None:
        """Take a replica for gone, which could not be connected to."""
