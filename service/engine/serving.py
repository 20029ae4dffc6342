"""The interfaces of engines for the routes of single samples and predictions.

`engine.facade.Engine` is the engine of this process. Workers and replicas have others, which pass
calls to the process that learns. `RestoredModels` predicts with models in recovery.
"""

import asyncio
import math
from collections.abc import Callable
from typing import NoReturn, Protocol, TypeAlias

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.delivery import SequenceWaiters
from wolfstream.service.engine.queue_items import Response
from wolfstream.service.errors import NotLeader, NotReady, Refusal, UnknownModel
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.model.revision import Revision
from wolfstream.service.samples.ids import LateLabels, RowId
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.prepare.named_rows import Rows

# Rows of a request. A name of its own, because workers and replicas import nothing of the solver.
RequestRows: TypeAlias = Rows


class PredictingEngine(Protocol):
    """An engine whose models predict. Used on the event loop."""

    @property
    def metrics(self) -> Metrics:
        """Counts and durations."""

    def is_model(self, name: str) -> bool:
        """Return whether a model has this name, in any phase."""

    def model(self, name: str) -> Model:
        """Return the live model of this name. Raises NotReady, UnknownModel."""

    async def compiled(
        self, model: Model, rows: RequestRows | None, seconds: float | None = None
    ) -> None:
        """Wait until the code that a model runs on such rows is compiled. Raises NotReady."""

    async def view(
        self,
        model: Model,
        head: HeadName,
        rows: RequestRows | None,
        awaited: Revision | None = None,
    ) -> ModelView:
        """Return the view to predict rows with.

        Args:
            model: that predicts.
            head: that the request asks for.
            rows: to predict; None for rows of the kind that the model has learned.
            awaited: the revision that the view must have reached.

        Raises NotReady, AnotherState, NotReached, UnknownModel.
        """

    def allowing(self, max_lag_seconds: float) -> "PredictingEngine":
        """Return an engine whose predictions may lack the samples of these last seconds."""

    def check_stores_rows(self, model: Model) -> None:
        """Raise a Refusal if predicted rows of a model cannot wait for labels here."""

    async def store_waiting_rows(
        self, model: Model, ids: list[RowId], rows: RequestRows, response: Response
    ) -> Response:
        """Let predicted rows wait for labels; return the prediction's response once durable."""


class ServingEngine(PredictingEngine, Protocol):
    """An engine whose models learn, too. Used on the event loop."""

    async def revision(self, model: Model) -> Revision:
        """Return the revision that a model is at now."""

    def submit(
        self,
        model: Model,
        head: HeadName,
        samples: Samples,
        key: bytes | None = None,
        durable: "asyncio.Future[Response] | None" = None,
        expected: tuple[Revision, ...] = (),
    ) -> "asyncio.Future[Response]":
        """Queue samples; the future is done once they are on disk, learned and published.

        Args:
            model: that learns.
            head: that the samples were posted to.
            samples: checked ones.
            key: the request's idempotency key.
            durable: done as soon as the samples are on disk, for a request that waits for no more.
            expected: revisions, one of which the model must be at; () for any.
        """

    def label(
        self,
        model: Model,
        head: HeadName,
        labels: LateLabels,
        expected: tuple[Revision, ...] = (),
    ) -> "asyncio.Future[Response]":
        """Queue labels of predicted rows; the future is done once each is learned or refused.

        Args:
            model: that learns.
            head: that the labels were posted to.
            labels: with the ids of their rows.
            expected: see `submit`.
        """


class RestoredModels:
    """Predicts with restored models where the engine cannot. For one request, on the event loop.

    After a start, or when a replica takes a model over, the model is replayed. Meanwhile it has a
    state that was saved some time ago. A caller who says how old a prediction may be (`max_lag`)
    gets one of that state. It lacks samples that were acknowledged since; only `sequence` in the
    response says which it has.

    Args:
        engine: predicts what it can itself.
        find: returns a model in recovery, and for how many seconds samples may be missing in it;
            None for any other model.
        max_lag_seconds: for how many seconds they may be missing.
    """

    def __init__(
        self,
        engine: PredictingEngine,
        find: Callable[[str], tuple[Model, float] | None],
        max_lag_seconds: float,
    ) -> None:
        self._engine, self._find, self._max_lag_seconds = engine, find, max_lag_seconds

    @property
    def metrics(self) -> Metrics:
        """The metrics of the engine."""
        return self._engine.metrics

    def is_model(self, name: str) -> bool:
        """Return whether the model of this name is restored, and recent enough."""
        restored = self._find(name)
        return restored is not None and restored[1] <= self._max_lag_seconds

    def model(self, name: str) -> Model:
        """Return the engine's model, or the restored one. Raises NotReady, UnknownModel."""
        try:
            return self._engine.model(name)
        except (NotReady, NotLeader, UnknownModel) as error:
            refusal: Refusal = error
        restored = self._find(name)
        if restored is None:
            raise refusal
        model, lag = restored
        if lag > self._max_lag_seconds:
            # The clock was put back since the snapshot, so that its age is not known.
            age = f"{lag:.0f} s old" if math.isfinite(lag) else "of unknown age, by this clock"
            raise NotReady(
                f"{refusal.detail}; the restored state of model {name!r} is {age}, and max_lag "
                f"allows {self._max_lag_seconds:g}"
            )
        return model

    async def compiled(
        self, model: Model, rows: RequestRows | None, seconds: float | None = None
    ) -> None:
        """Return at once: what is not compiled is compiled by the prediction itself."""

    async def view(
        self,
        model: Model,
        head: HeadName,
        rows: RequestRows | None,
        awaited: Revision | None = None,
    ) -> ModelView:
        """Return the restored view, or the engine's. Raises AnotherState, NotReached."""
        restored = self._find(model.name)
        if restored is None or restored[0] is not model:  # it was recovered meanwhile
            return await self._engine.view(model, head, rows, awaited)
        if awaited is not None:
            await SequenceWaiters(seconds=0.0).reached(model, awaited)
        published = model.published
        view = published.heads.get(head)
        if rows is not None and view is not None and not view.lacks:
            # Compiles or loads the code here, where the event loop does not wait for it.
            await asyncio.to_thread(
                lambda: model.chain.predict(published, head, published.head_rows(rows))
            )
        return published

    def check_stores_rows(self, model: Model) -> NoReturn:
        """Raise NotReady: rows cannot wait for labels before their model is recovered."""
        raise NotReady(f"model {model.name!r} is being brought back; leave ids out, or try again")

    async def store_waiting_rows(
        self, model: Model, ids: list[RowId], rows: RequestRows, response: Response
    ) -> Response:
        """Raise NotReady."""
        del ids, rows, response
        self.check_stores_rows(model)

    def allowing(self, max_lag_seconds: float) -> PredictingEngine:
        """Return the same with another bound."""
        return RestoredModels(self._engine, self._find, max_lag_seconds)
