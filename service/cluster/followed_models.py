"""Predictions with copies of the views of models that other replicas lead.

A request that a copy cannot answer is refused with NotLeader, and then forwarded to the leader.
"""

from copy import copy
from typing import NoReturn

from wolfstream.service.cluster.followed_views import FollowedViews
from wolfstream.service.cluster.peers import Peers
from wolfstream.service.cluster.roles import Roles
from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.delivery import SequenceWaiters
from wolfstream.service.engine.queue_items import Response
from wolfstream.service.engine.serving import PredictingEngine, RequestRows
from wolfstream.service.errors import NotLeader, NotReached
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.model.revision import Revision
from wolfstream.service.samples.ids import RowId
from wolfstream.service.settings import Settings
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.entries import is_same_lineage


class FollowedModels:
    """A `PredictingEngine` for models that other replicas lead. Used on the event loop.

    Attributes:
        views: the copies of views.
    """

    def __init__(
        self,
        engine: PredictingEngine,
        roles: Roles,
        settings: Settings,
        peers: Peers,
    ) -> None:
        """Begin without copies.

        Args:
            engine: of this replica.
            roles: knows which replica leads a model.
            settings: of this replica.
            peers: requests views.
        """
        self._engine = engine
        self._max_lag_seconds = settings.max_lag_seconds
        self._waiters = SequenceWaiters(settings.wait_seconds)
        self.views = FollowedViews(roles, peers, self._waiters.wake, settings.models)

    @property
    def metrics(self) -> Metrics:
        """The metrics of this replica."""
        return self._engine.metrics

    def predicts(self, name: str) -> bool:
        """Return whether a model's copy can predict now; copy its view from now on."""
        return self.views.use(name) is not None and not self.is_stale(name)

    def is_model(self, name: str) -> bool:
        """Return whether there is a copy of a model's view."""
        return any(model.name == name for model in self.views.models())

    def is_stale(self, name: str) -> bool:
        """Return whether there is a copy of a model's view that may be too old."""
        return self.views.lag_seconds(name) > self._max_lag_seconds

    def model(self, name: str) -> Model:
        """Return the model of this name. Raises NotLeader without a copy of its view."""
        model = self.views.use(name)
        if model is None:
            raise _not_here(name)
        return model

    def allowing(self, max_lag_seconds: float) -> "FollowedModels":
        """Return the same models, for a caller that accepts older views than the settings do.

        Args:
            max_lag_seconds: how old a view may be.
        """
        other = copy(self)
        other._max_lag_seconds = max(self._max_lag_seconds, max_lag_seconds)
        return other

    def is_restored(self, name: str, max_lag_seconds: float) -> bool:
        """Return whether this replica is taking over a model, and its snapshot can predict already.

        If the model has no leader, the takeover starts now.

        Args:
            name: of the model.
            max_lag_seconds: how old the snapshot may be.
        """
        self.views.use(name)
        return self._engine.allowing(max_lag_seconds).is_model(name)

    async def compiled(
        self, model: Model, rows: RequestRows | None, seconds: float | None = None
    ) -> None:
        """Wait until the code that a model runs on such rows is compiled. Raises NotReady."""
        await self._engine.compiled(model, rows, seconds)

    async def view(
        self,
        model: Model,
        head: HeadName,
        rows: RequestRows | None,
        awaited: Revision | None = None,
    ) -> ModelView:
        """Return the copy of a view; see `PredictingEngine.view`.

        Raises NotLeader if the leader has to answer:

        - An epoch of another lineage is awaited.
        - The head cannot predict yet; at the leader, it may have learned enough a moment ago.
        - The copy has become too old while the prediction waited.
        """
        await self.compiled(model, rows)
        if awaited is not None:
            epoch = model.published.epoch
            if awaited.epoch is not None and not is_same_lineage(awaited.epoch, epoch):
                raise _not_here(model.name)
            await self._waiters.reached(model, awaited)
        if (shown := self.views.awaited(model.name)) is not None:
            await self._reach(model, shown)
        if self.is_stale(model.name):
            raise _not_here(model.name)
        published = model.published
        if head not in published.heads or published.heads[head].lacks:
            raise _not_here(model.name)
        return published

    async def _reach(self, model: Model, shown: Revision) -> None:
        """Wait until a copy has reached the revision that clients were shown. Raises NotLeader."""
        if shown.epoch is not None:
            raise _not_here(model.name)
        try:
            await self._waiters.reached(model, shown)
        except NotReached:
            raise _not_here(model.name) from None

    def check_stores_rows(self, model: Model) -> NoReturn:
        """Raise NotLeader: predicted rows wait for their labels at the leader."""
        raise _not_here(model.name)

    async def store_waiting_rows(
        self, model: Model, ids: list[RowId], rows: RequestRows, response: Response
    ) -> Response:
        """Raise NotLeader; see `check_stores_rows`."""
        del ids, rows, response
        raise _not_here(model.name)


def _not_here(name: str) -> NotLeader:
    return NotLeader(f"another replica leads model {name!r}")
