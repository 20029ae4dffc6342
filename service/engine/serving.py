"""The interfaces of engines for the routes of single samples and predictions.

`engine.facade.Engine` is the engine of this process. Workers and replicas have others, which pass
calls to the process that learns.
"""

import asyncio
from typing import Protocol, TypeAlias

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.queue_items import Response
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
