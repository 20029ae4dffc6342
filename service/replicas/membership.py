"""What a replica has of its fleet."""

from typing import Any, NamedTuple

from service.replicas.director import Director
from service.replicas.followed_models import FollowedModels
from service.replicas.given_views import GivenViews


class Membership(NamedTuple):
    """A replica's part in a fleet.

    director: knows who leads what. followed: models that others lead. given: views of models that
    this one leads.
    """

    director: Director
    followed: FollowedModels
    given: GivenViews

    def describe(self) -> dict[str, Any]:
        """The fleet as this replica sees it, and the views that it holds, as plain data."""
        return {**self.director.describe(), "views": self.followed.views.describe()}
