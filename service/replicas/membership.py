"""A replica's part in its fleet."""

from typing import Any, NamedTuple

from wolfstream.service.replicas.director import Director
from wolfstream.service.replicas.followed_models import FollowedModels
from wolfstream.service.replicas.served_views import ServedViews


class Membership(NamedTuple):
    """The parts of a replica that deal with the rest of its fleet.

    director: knows which replica leads a model. followed: models that others lead. served: serves
    the views of models that this one leads.
    """

    director: Director
    followed: FollowedModels
    served: ServedViews

    def describe(self) -> dict[str, Any]:
        """Return what this replica knows of its fleet, and the views that it holds."""
        return {**self.director.describe(), "views": self.followed.views.describe()}
