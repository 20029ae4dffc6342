"""A model's challengers, as the event loop looks them up."""

from collections.abc import Callable

from wolfstream.service.engine.leading import Leadership
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.errors import NotFollowing, NotLeader, UnknownModel
from wolfstream.service.model.live import Model


class ChallengerLookup:
    """The challengers of models. Used on the event loop.

    Args:
        models: that are learned here.
        find: returns the live model of a name; raises NotReady, UnknownModel.
        leading: of a replica of a fleet, which may have to lead challengers first; None without a
            fleet.
    """

    def __init__(
        self, models: LiveModels, find: Callable[[str], Model], leading: Leadership | None
    ) -> None:
        self._models, self._find, self._leading = models, find, leading

    def following(self, champion: Model) -> list[Model]:
        """Return a model's challengers that are learned here, oldest first."""
        return [learner.model for learner in self._models.followers(champion)]

    async def lead(self, champion: Model) -> None:
        """Lead all challengers of a model: a new leader of a fleet may lack some of them.

        Raises NotLeader, StorageFailed, NotReady.
        """
        if self._leading is not None:
            await self._leading.lead_followers(champion)

    async def named(self, champion: Model, name: str) -> Model:
        """Return the challenger of this name.

        Without a fleet, the model may follow another one, or none: the writer refuses it later.

        Raises UnknownModel, NotFollowing, NotLeader, NotReady, StorageFailed.
        """
        model = self._models.get(name)
        if model is not None and (self._leading is None or model.champion is champion):
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
