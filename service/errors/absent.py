"""Requests for something that does not exist."""

from wolfstream.service.errors.refusal import Refusal


class UnknownModel(Refusal):
    """No model has this name."""

    slug, title = "unknown-model", "There is no such model"

    @classmethod
    def named(cls, name: str) -> "UnknownModel":
        """Return the error of a name that no model has."""
        return cls(f"there is no model {name!r}; create it with PUT /v1/models/{name}")


class UnknownJob(Refusal):
    """No job of this model has this id, or it is no longer kept."""

    slug, title = "unknown-job", "There is no such job"


class UnknownSnapshot(Refusal):
    """The model has no snapshot of this sequence, or it is no longer kept."""

    slug, title = "unknown-snapshot", "There is no such snapshot"


class NoSuchHead(Refusal):
    """The model was created without this head."""

    slug, title = "no-such-head", "The model has no such head"
