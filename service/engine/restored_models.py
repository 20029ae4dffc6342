"""Predictions of models that are being brought back, as their snapshots have restored them.

A model is replayed after a start, or where a replica begins to lead it. Meanwhile it has a state
that was saved some time ago, and a caller who says how old a prediction may be gets that of this
state. It lacks what was acknowledged since: only `sequence` in the answer says what it has.
"""

import asyncio
from collections.abc import Callable
from typing import NoReturn

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.learn_request import Answer
from wolfstream.service.engine.sequence_waiters import SequenceWaiters
from wolfstream.service.engine.serving import AskedRows, Predicting
from wolfstream.service.errors import NotLeader, NotReady, Refusal, UnknownModel
from wolfstream.service.model.live import Model
from wolfstream.service.model.moment import Moment
from wolfstream.service.model.published import Published
from wolfstream.service.samples.ids import RowId
from wolfstream.service.spec.heads import HeadName


class RestoredModels:
    """An `engine.serving.Predicting`. Used on the event loop, for one request.

    Args:
        engine: predicts what it can itself.
        find: returns a model that is being brought back, and how many seconds may be missing in
            what it predicts with; None for any other model.
        max_lag_seconds: how many may be missing.
    """

    def __init__(
        self,
        engine: Predicting,
        find: Callable[[str], tuple[Model, float] | None],
        max_lag_seconds: float,
    ) -> None:
        self._engine, self._find, self._max_lag_seconds = engine, find, max_lag_seconds

    @property
    def metrics(self) -> Metrics:
        """The metrics of the engine."""
        return self._engine.metrics

    def is_model(self, name: str) -> bool:
        """Return whether a model of this name is restored, and new enough."""
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
            raise NotReady(
                f"{refusal.detail}; what model {name!r} has been restored to is {lag:.0f} s old, "
                f"and max_lag allows {self._max_lag_seconds:g}"
            )
        return model

    async def compiled(
        self, model: Model, rows: AskedRows | None, seconds: float | None = None
    ) -> None:
        """Wait for nothing: what is not compiled yet is compiled by the prediction."""

    async def view(
        self, model: Model, head: HeadName, rows: AskedRows | None, awaited: Moment | None = None
    ) -> Published:
        """Return the restored view, or the engine's. Raises AnotherState, NotReached."""
        restored = self._find(model.name)
        if restored is None or restored[0] is not model:  # it has been brought back meanwhile
            return await self._engine.view(model, head, rows, awaited)
        if awaited is not None:
            await SequenceWaiters(seconds=0.0).reached(model, awaited)
        published = model.published
        view = published.heads.get(head)
        if rows is not None and view is not None and not view.lacks:
            # Compiles or loads the code, for which the event loop must not wait.
            await asyncio.to_thread(
                lambda: model.chain.predict(published, head, published.seen(rows))
            )
        return published

    def check_remembers(self, model: Model) -> NoReturn:
        """Raise NotReady: rows cannot wait for their labels before their model is brought back."""
        raise NotReady(f"model {model.name!r} is being brought back; leave ids out, or try again")

    async def remember(
        self, model: Model, ids: list[RowId], rows: AskedRows, response: Answer
    ) -> Answer:
        """Raise NotReady."""
        del ids, rows, response
        self.check_remembers(model)

    def allowing(self, max_lag_seconds: float) -> Predicting:
        """Return the same with another bound."""
        return RestoredModels(self._engine, self._find, max_lag_seconds)
