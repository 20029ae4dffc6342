"""The task that watches live models: for their listeners, for the history, and for alerts."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Any
from weakref import WeakKeyDictionary

from wolfstream.service.engine.facade import Engine
from wolfstream.service.model.live import Model
from wolfstream.service.monitor.alerts import Alert, Alerts, model_alerts
from wolfstream.service.monitor.channel import EventChannel
from wolfstream.service.monitor.console_state import Meter, console_state, read_counters, values
from wolfstream.service.monitor.points import Point, Points

logger = logging.getLogger(__name__)

POINT_SECONDS = 10
_EVENT_SECONDS = 1.0
# Readings of a meter: rates in events are over five seconds, rates in points between two points.
_EVENT_READINGS, _POINT_READINGS = 6, 2
# How long a channel without listeners keeps its events for a listener that returns.
_IDLE_SECONDS = 30.0


class _WatchedModel:
    """A model that has, or had, listeners.

    Attributes:
        channel: to the listeners.
        meter: of the rates in events.
        last_listened: when there was last a listener, by time.monotonic(); 0 before that.
    """

    def __init__(self) -> None:
        self.channel = EventChannel()
        self.meter = Meter(_EVENT_READINGS)
        self.last_listened = 0.0


class Monitor:
    """Watches a server's models. Used on the event loop."""

    def __init__(self, engine: Engine, points: Points, alerts: Alerts) -> None:
        """Begin without listeners.

        Args:
            engine: of the models.
            points: stores the numbers of the last hours.
            alerts: stores the alerts.
        """
        self._engine, self._points, self._alerts = engine, points, alerts
        # model -> sequence of its last change, as last seen. A rollback may take changes away, but
        # later ones always have later sequences. The references are weak, to free deleted models.
        self._changes: WeakKeyDictionary[Model, int] = WeakKeyDictionary()
        self._watched: dict[Model, _WatchedModel] = {}
        # model -> (meter of the rates in points, state at the last point); weak, too.
        self._meters: WeakKeyDictionary[Model, tuple[Meter, tuple[float, ...]]] = (
            WeakKeyDictionary()
        )
        self._closed = False

    async def run(self) -> None:
        """Watch the models once a second, from the server's readiness until cancelled."""
        await asyncio.wait([self._engine.ready])
        writing: asyncio.Task[None] | None = None
        ticks = 0
        while not self._closed:
            await asyncio.sleep(_EVENT_SECONDS)
            try:
                await self._report_alerts()
                await self._publish()
                if ticks % POINT_SECONDS == 0 and (writing is None or writing.done()):
                    writing = asyncio.create_task(asyncio.to_thread(self._write_points))
            except Exception:  # listeners get nothing new, but everything else goes on
                logger.exception("models not shown, trying again")
            ticks += 1

    def listen(self, model: Model, last_id: str | None) -> AsyncIterator[bytes]:
        """Yield the events of a model from now on; see `EventChannel.listen`."""
        watched = self._watched.get(model)
        if watched is None:
            watched = self._watched[model] = _WatchedModel()
            self._publish_state(model, watched)
        if self._closed:
            watched.channel.close("stopping")
        return watched.channel.listen(last_id)

    async def history(self, model: Model) -> dict[str, Any]:
        """Return the numbers of a model over the last hours; see `Points.read`."""
        return await asyncio.to_thread(self._points.read, model.id)

    def close(self) -> None:
        """End all listeners, and stop watching."""
        self._closed = True
        for watched in self._watched.values():
            watched.channel.close("stopping")

    async def _publish(self) -> None:
        now, live = time.monotonic(), set(self._engine.recovered()) if self._watched else set()
        for model, watched in list(self._watched.items()):
            if model not in live:
                watched.channel.close("deleted")
                del self._watched[model]
            elif watched.channel.listeners or not watched.last_listened:
                watched.last_listened = now
                try:
                    self._publish_state(model, watched)
                except Exception:  # the other models are shown
                    logger.exception("model not shown: model=%s", model.name)
                await asyncio.sleep(0)  # let requests in between two models
            elif now - watched.last_listened > _IDLE_SECONDS:
                del self._watched[model]

    async def _report_alerts(self) -> None:
        """Record new changes as alerts, and send them to listeners."""
        models = self._engine.recovered()
        last = WeakKeyDictionary({model: _last_change(model) for model in models})
        changed = [model for model in models if last[model] != self._changes.get(model, 0)]
        new = await asyncio.to_thread(self._record_alerts, changed) if changed else []
        self._changes = last
        by_id = {model.id: model for model in changed}
        for alert in new:
            watched = self._watched.get(by_id[alert.model_id])
            if watched is not None:
                watched.channel.publish("alert", alert.content)

    def _record_alerts(self, models: list[Model]) -> list[Alert]:
        """Record and log the new changes of models; return them."""
        new = self._alerts.record(alert for model in models for alert in model_alerts(model))
        for alert in new:
            change = alert.content
            logger.warning(
                "predictions became worse: model=%s head=%s sequence=%d samples_ago=%d "
                "mean_loss=%.3g mean_loss_before=%.3g",
                *(change[name] for name in ("model", "head", "sequence", "samples")),
                *(change[name] for name in ("after", "before")),
            )
        return new

    def _publish_state(self, model: Model, watched: _WatchedModel) -> None:
        read_counters(watched.meter, time.monotonic(), model)
        waiting = self._engine.waiting().samples
        challengers = self._engine.challengers.following(model)
        state = console_state(model, watched.meter, waiting, challengers)
        watched.channel.publish("state", state)

    def _write_points(self) -> None:
        """Write a point of each model that has changed; on a thread of its own."""
        models = self._engine.recovered()
        live = {model.id for model in models}
        points = [point for model in models if (point := self._point(model)) is not None]
        self._points.write(points, live)
        self._alerts.forget(live)

    def _point(self, model: Model) -> Point | None:
        """Return a point of a model; None if nothing has changed since the last one."""
        meter, before = self._meters.get(model, (Meter(_POINT_READINGS), ()))
        predicted = (counts.predicted for counts in model.counts.values())
        state = (model.published.sequence, *predicted)
        read_counters(meter, time.monotonic(), model)
        self._meters[model] = meter, state
        if state == before:
            return None
        heads = {str(head): view.stats for head, view in model.published.heads.items()}
        numbers = {"sequence": state[0], **values(model, heads, meter)}
        return Point(model.id, round(time.time() * 1000), numbers)


def _last_change(model: Model) -> int:
    """Return the sequence of the last change of any head; 0 without one."""
    views = model.published.heads.values()
    return max((view.changes[-1].sequence for view in views if view.changes), default=0)
