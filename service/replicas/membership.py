"""A replica's part in its fleet."""

import ssl
from typing import Any, NamedTuple

from wolfstream.service.replicas.director import Director
from wolfstream.service.replicas.followed_models import FollowedModels
from wolfstream.service.replicas.neighbours import Neighbours
from wolfstream.service.replicas.served_views import ServedViews


class Membership(NamedTuple):
    """The parts of a replica that deal with the rest of its fleet.

    director: knows which replica leads a model. followed: models that others lead. served: serves
    the views of models that this one leads. neighbours: whether the others answer over HTTP.
    tls: with which their certificates are verified.
    """

    director: Director
    followed: FollowedModels
    served: ServedViews
    neighbours: Neighbours
    tls: ssl.SSLContext

    def describe(self) -> dict[str, Any]:
        """Return what this replica knows of its fleet, and the views that it holds."""
        described, answering = self.director.describe(), self.neighbours.describe()
        for replica in described["replicas"]:
            replica["http"] = answering.get(replica["url"])
        views = self.followed.views.describe()
        return {**described, "unanswered": self.neighbours.unanswered, "views": views}
