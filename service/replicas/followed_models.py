"""Models that other replicas lead, as routes predict with them: with the views that are followed.

What a view cannot answer is refused as NotLeader: the leader is asked then, with the same request.
"""

from copy import copy
from typing import NoReturn

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.learn_request import Answer
from wolfstream.service.engine.sequence_waiters import SequenceWaiters
from wolfstream.service.engine.serving import AskedRows, Predicting
from wolfstream.service.errors import NotLeader, NotReached
from wolfstream.service.model.live import Model
from wolfstream.service.model.moment import Moment
from wolfstream.service.model.published import Published
from wolfstream.service.replicas.director import Director
from wolfstream.service.replicas.followed_views import FollowedViews
from wolfstream.service.replicas.peers import Peers
from wolfstream.service.samples.ids import RowId
from wolfstream.service.settings import Settings
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.entries import is_same_lineage


class FollowedModels:
    """An `engine.serving.Predicting`. Used on the event loop.

    engine: of this replica.
    """

    def __init__(
        self,
        engine: Predicting,
        director: Director,
        settings: Settings,
        peers: Peers,
    ) -> None:
        self._engine = engine
        self._max_lag_seconds = settings.max_lag_seconds
        self._waiters = SequenceWaiters(settings.wait_seconds)
        self.views = FollowedViews(director, peers, self._waiters.wake, settings.models)

    @property
    def metrics(self) -> Metrics:
        """The metrics of this replica."""
        return self._engine.metrics

    def predicts(self, name: str) -> bool:
        """Return whether predictions of a model are made here; its view is followed from now on."""
        return self.views.use(name) is not None and not self.is_stale(name)

    def is_model(self, name: str) -> bool:
        """Return whether the view of a model is held."""
        return any(model.name == name for model in self.views.held())

    def is_stale(self, name: str) -> bool:
        """Return whether a view is held that may be too old."""
        return self.views.lag_seconds(name) > self._max_lag_seconds

    def model(self, name: str) -> Model:
        """Return the model of this name. Raises NotLeader."""
        model = self.views.use(name)
        if model is None:
            raise _not_here(name)
        return model

    def allowing(self, max_lag_seconds: float) -> "FollowedModels":
        """Return the same, with views that may be so old if that is more than the bound."""
        other = copy(self)
        other._max_lag_seconds = max(self._max_lag_seconds, max_lag_seconds)
        return other

    def is_restored(self, name: str, max_lag_seconds: float) -> bool:
        """Return whether this replica takes a model over, and can predict with a restored state.

        Without a leader the model is led from now on.
        """
        self.views.use(name)
        return self._engine.allowing(max_lag_seconds).is_model(name)

    async def compiled(
        self, model: Model, rows: AskedRows | None, seconds: float | None = None
    ) -> None:
        """Wait until what a model runs on such rows is compiled. Raises NotReady."""
        await self._engine.compiled(model, rows, seconds)

    async def view(
        self, model: Model, head: HeadName, rows: AskedRows | None, awaited: Moment | None = None
    ) -> Published:
        """Return the view that is held; see `Predicting.view`.

        Raises NotLeader for what the leader has to decide: about another life of the model, about
        a head that cannot predict yet, as it may have learned enough a moment ago, and about a view
        that has become too old while the prediction waited.
        """
        await self.compiled(model, rows)
        if awaited is not None:
            epoch = model.published.epoch
            if awaited.epoch is not None and not is_same_lineage(awaited.epoch, epoch):
                raise _not_here(model.name)
            await self._waiters.reached(model, awaited)
        if (told := self.views.awaited(model.name)) is not None:
            await self._reach(model, told)
        if self.is_stale(model.name):
            raise _not_here(model.name)
        published = model.published
        if head not in published.heads or published.heads[head].lacks:
            raise _not_here(model.name)
        return published

    async def _reach(self, model: Model, told: Moment) -> None:
        """Wait until a view has what clients were told here. Raises NotLeader."""
        if told.epoch is not None:
            raise _not_here(model.name)
        try:
            await self._waiters.reached(model, told)
        except NotReached:
            raise _not_here(model.name) from None

    def check_remembers(self, model: Model) -> NoReturn:
        """Raise NotLeader: rows wait for their labels where these are learned."""
        raise _not_here(model.name)

    async def remember(
        self, model: Model, ids: list[RowId], rows: AskedRows, response: Answer
    ) -> Answer:
        """Raise NotLeader."""
        del ids, rows, response
        raise _not_here(model.name)


def _not_here(name: str) -> NotLeader:
    return NotLeader(f"another replica leads model {name!r}")
