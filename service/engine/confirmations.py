"""Makes sure that this replica still leads the models that it predicts with.

A replica hears from announcements on NATS that another one leads its models. It may hear none and
still reach the logs: a NATS server passes an announcement on only once, so two servers that are cut
off from each other share none, though both reach a third one that leads the streams. Then only a
model's log shows who leads it. So the log is asked again before what it has shown is too old.
"""

import asyncio
from collections.abc import Awaitable, Callable

from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.engine.live_models import LiveModels
from wolfstream.service.errors import NotLeader, NotReady, StorageFailed
from wolfstream.service.model.live import Model

# The part of the bound after which the log is asked again, while predictions go on, and the part
# that those who follow views elsewhere leave for the way there.
_RENEWED_AFTER, _LEFT_TO_FOLLOWERS = 0.25, 0.5
# How long a prediction waits for the log at most, and the pause after one that did not answer.
_WAIT_SECONDS, _PAUSE_SECONDS = 5.0, 0.2


class Confirmations:
    """What the logs have shown of the models that are led here. Used on the event loop.

    Args:
        models: that are led here.
        confirm: asks the log of the model of a name whether another replica writes it by now;
            raises NotLeader, StorageFailed.
        max_lag_seconds: how old a prediction may be.

    Attributes:
        followed_lag_seconds: how old a confirmation may be for views that are followed elsewhere.
        renewal_seconds: after how long a log is asked again.
    """

    def __init__(
        self,
        models: LiveModels,
        confirm: Callable[[str], Awaitable[None]],
        max_lag_seconds: float,
    ) -> None:
        self._models, self._confirm = models, confirm
        self._max_lag_seconds = max_lag_seconds
        self.followed_lag_seconds = max_lag_seconds * (1.0 - _LEFT_TO_FOLLOWERS)
        self.renewal_seconds = max_lag_seconds * _RENEWED_AFTER
        self._tasks: dict[Model, asyncio.Task[None]] = {}

    def lag_seconds(self, model: Model) -> float:
        """Return for how long another replica may lead a model; ask its log if that is long.

        Raises NotLeader, UnknownModel.
        """
        return max(self._lag_seconds(each) for each in _with_champion(model))

    def _lag_seconds(self, model: Model) -> float:
        lag = boot_seconds() - self._models.term(model).confirmed
        if lag > self.renewal_seconds:
            self._renew(model)
        return lag

    async def check(self, model: Model, max_lag_seconds: float | None = None) -> None:
        """Return if no other replica leads a model, as far as its log has shown lately.

        Args:
            model: that is led here.
            max_lag_seconds: how long ago that may be; None for the bound of predictions.

        Raises NotLeader, UnknownModel, and NotReady if the log does not answer.
        """
        bound = self._max_lag_seconds if max_lag_seconds is None else max_lag_seconds
        for each in _with_champion(model):
            if self._lag_seconds(each) > bound:
                await self._wait(each)

    async def _wait(self, model: Model) -> None:
        """Wait until a model's log has answered. Raises NotLeader, UnknownModel, NotReady."""
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await asyncio.shield(self._renew(model))
        except NotLeader:
            raise
        except (StorageFailed, TimeoutError) as error:
            why = error.detail if isinstance(error, StorageFailed) else "its log does not answer"
            raise NotReady(
                f"another replica may lead model {model.name!r} by now, and have learned more: "
                f"{why}; try again"
            ) from None

    def _renew(self, model: Model) -> "asyncio.Task[None]":
        """Ask a model's log, unless it is being asked; return the task that does so."""
        task = self._tasks.get(model)
        if task is None:
            task = self._tasks[model] = asyncio.create_task(self._ask(model))
            task.add_done_callback(lambda _: self._tasks.pop(model))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def _ask(self, model: Model) -> None:
        try:
            await self._confirm(model.name)
        except NotLeader:
            raise
        except StorageFailed:
            await asyncio.sleep(_PAUSE_SECONDS)
            raise
        self._models.term(model)  # another model may have the name by now


def _with_champion(model: Model) -> list[Model]:
    """Return the models whose logs show what a model may lack: a challenger's are two."""
    return [model] if model.champion is None else [model.champion, model]
