"""The challengers of a model, as the event loop may ask for them."""

from collections.abc import Callable

from wolfstream.service.engine.leading import Leading
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.errors import NotFollowing, NotLeader, UnknownModel
from wolfstream.service.model.live import Model


class ChallengerLookup:
    """The models that follow others. Used on the event loop.

    find: returns the live model of a name; raises NotReady, UnknownModel. leading: of a replica of
    a fleet, which may have to lead them first; None of a server without a fleet.
    """

    def __init__(
        self, models: LiveModels, find: Callable[[str], Model], leading: Leading | None
    ) -> None:
        self._models, self._find, self._leading = models, find, leading

    def of(self, champion: Model) -> list[Model]:
        """Return the models that follow another one here, oldest first."""
        return [learner.model for learner in self._models.followers(champion)]

    async def lead(self, champion: Model) -> None:
        """Lead all models that follow another one: a new leader of a fleet may lack some of them.

        Raises NotLeader, StorageFailed, NotReady.
        """
        if self._leading is not None:
            await self._leading.lead_followers(champion)

    async def named(self, champion: Model, name: str) -> Model:
        """Return the model of a name that follows another one, if it exists.

        It may follow none, unless this is a replica of a fleet, which has only followers for sure.
        Raises UnknownModel, NotFollowing, NotLeader, NotReady, StorageFailed.
        """
        found = self._models.get(name)
        if found is not None and (self._leading is None or found.champion is champion):
            return self._find(name)
        entry = None if self._leading is None else await self._leading.entry(name)
        if entry is None:
            raise UnknownModel(
                f"there is no model {name[:80]!r}: GET /v1/models/{champion.name}/challengers "
                "lists the models that can be promoted"
            )
        if entry.follows == champion.id:  # the leader has changed since `lead`
            raise NotLeader(f"model {name!r} is not led here yet, or not any more; try again")
        raise NotFollowing.named(name, champion.name)
