"""What the busiest routes need from an engine, in this process or in another one."""

import asyncio
from typing import Protocol, TypeAlias

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.learn_request import Answer
from wolfstream.service.model.live import Model
from wolfstream.service.model.moment import Moment
from wolfstream.service.model.published import Published
from wolfstream.service.samples.ids import LateLabels, RowId
from wolfstream.service.samples.validation import Samples
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.prepare.named_rows import Rows

# Rows of a request, in any of the forms that requests have.
AskedRows: TypeAlias = Rows


class Predicting(Protocol):
    """Models that predict; see `engine.facade.Engine`. Used on the event loop."""

    @property
    def metrics(self) -> Metrics:
        """Counts and durations."""

    def is_model(self, name: str) -> bool:
        """Return whether there is a model of this name, in any phase."""

    def model(self, name: str) -> Model:
        """Return the live model of this name. Raises NotReady, UnknownModel."""

    async def compiled(
        self, model: Model, rows: AskedRows | None, seconds: float | None = None
    ) -> None:
        """Wait until what a model runs to learn such rows is compiled. Raises NotReady."""

    async def view(
        self, model: Model, head: HeadName, rows: AskedRows | None, awaited: Moment | None = None
    ) -> Published:
        """Return the published view to predict such rows with, and with this head.

        rows: None for those of the kind that the model has learned. awaited: what the view must
        have reached. Raises NotReady, AnotherState, NotReached, UnknownModel.
        """

    def allowing(self, max_lag_seconds: float) -> "Predicting":
        """Return who predicts where so many of the last seconds may be missing."""

    def check_remembers(self, model: Model) -> None:
        """Raise a Refusal where predicted rows of a model cannot wait for their labels here."""

    async def remember(
        self, model: Model, ids: list[RowId], rows: AskedRows, response: Answer
    ) -> Answer:
        """Let predicted rows wait for their labels; the prediction's answer, once durable."""


class Serving(Predicting, Protocol):
    """Models that learn, too."""

    async def moment(self, model: Model) -> Moment:
        """Return the epoch and sequence that a model has now."""

    def submit(
        self,
        model: Model,
        head: HeadName,
        samples: Samples,
        key: bytes | None = None,
        durable: "asyncio.Future[Answer] | None" = None,
        expected: tuple[Moment, ...] = (),
    ) -> "asyncio.Future[Answer]":
        """Queue samples; the future is done once they are on disk, learned and published."""

    def label(
        self,
        model: Model,
        head: HeadName,
        labels: LateLabels,
        expected: tuple[Moment, ...] = (),
    ) -> "asyncio.Future[Answer]":
        """Queue labels of predicted rows; the future is done once they are learned or settled."""
