"""Requests that the present state of the server or of a model does not allow."""

from wolfstream.service.errors.refusal import Refusal


class TooManyModels(Refusal):
    """The server has reached its limit of models."""

    slug, title = "too-many-models", "There are too many models"


class ModelExists(Refusal):
    """The name is taken by a model with another spec."""

    slug, title = "model-exists", "The model exists with another spec"


class StateExists(ModelExists):
    """The name is taken by a model that is not in the state that was sent."""

    slug, title = "state-exists", "The model exists in another state"


class AnotherState(Refusal):
    """The model has another epoch or sequence than the request names."""

    slug, title = "another-state", "The model is in another state"


class KeyReused(Refusal):
    """Another request was sent under the same idempotency key."""

    slug, title = "idempotency-key-reused", "The idempotency key belongs to another request"


class IdTaken(Refusal):
    """Other rows wait for their labels under some of the ids, or have had them."""

    slug, title = "id-taken", "Other rows came under these ids"


class Follows(Refusal):
    """The model follows another one, whose samples it learns."""

    slug, title = "follows", "The model follows another one"


class NotFollowing(Refusal):
    """The model does not follow the one that it would replace."""

    slug, title = "not-following", "The model is no challenger of this one"

    @classmethod
    def named(cls, name: str, champion: str) -> "NotFollowing":
        """Return the error of a model that does not follow the one that was named its champion."""
        return cls(
            f"model {name!r} does not follow {champion!r}: only a challenger can be promoted, "
            f"GET /v1/models/{champion}/challengers lists them"
        )


class UnusableSnapshot(Refusal):
    """The snapshot is damaged."""

    slug, title = "unusable-snapshot", "The snapshot cannot be used"


class Untrained(Refusal):
    """Fewer than two classes have been learned."""

    slug, title = "untrained", "The model has not learned enough to predict"


class RefitFailed(Refusal):
    """The samples in the window and the spec do not make a model."""

    slug, title = "refit-failed", "The refit failed"
