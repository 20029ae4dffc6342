"""What connects a replica with the rest of its fleet.

A server without a fleet imports this, too, and may be installed without the client of NATS.
"""

import ssl
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # these import the client of NATS
    from wolfstream.service.cluster.followed_models import FollowedModels
    from wolfstream.service.cluster.neighbours import Neighbours
    from wolfstream.service.cluster.roles import Roles
    from wolfstream.service.cluster.served_views import ServedViews


class Membership(NamedTuple):
    """The objects of a replica that deal with the rest of its fleet."""

    roles: "Roles"  # knows which replica leads a model
    followed: "FollowedModels"  # models that other replicas lead
    served: "ServedViews"  # views of the models that this replica leads
    neighbours: "Neighbours"  # whether the other replicas respond over HTTP
    tls: ssl.SSLContext  # verifies their certificates

    def describe(self) -> dict[str, Any]:
        """Return what this replica knows of its fleet, and its copies of views, as plain data."""
        fleet, neighbours = self.roles.describe(), self.neighbours.describe()
        for replica in fleet["replicas"]:
            replica["http"] = neighbours.get(replica["url"])
        views = self.followed.views.describe()
        return {**fleet, "unanswered": self.neighbours.unanswered, "views": views}
