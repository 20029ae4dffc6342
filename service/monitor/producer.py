"""The one task that watches live models, for their listeners and for the file of points."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

from wolfstream.service.engine.facade import Engine
from wolfstream.service.model.live import Model
from wolfstream.service.monitor.alerts import Alert, Alerts, alerts_of
from wolfstream.service.monitor.channel import Channel
from wolfstream.service.monitor.meters import Meter
from wolfstream.service.monitor.picture import picture, read_counters, values
from wolfstream.service.monitor.points import Point, Points

logger = logging.getLogger(__name__)

POINT_SECONDS = 10
_EVENT_SECONDS = 1.0
# Rates in events are over five seconds, those in points from one point to the next.
_READINGS, _READINGS_OF_POINTS = 6, 2
# How long a channel without listeners keeps its events for one that comes back.
_IDLE_SECONDS = 30.0


class _Watched:
    """A model with listeners."""

    def __init__(self) -> None:
        self.channel = Channel()
        self.meter = Meter(_READINGS)
        self.last_listened = 0.0


class Monitor:
    """Watches a server's models, on the event loop.

    points: keeps the numbers of the last hours. alerts: keeps the changes.
    """

    def __init__(self, engine: Engine, points: Points, alerts: Alerts) -> None:
        self._engine, self._points, self._alerts = engine, points, alerts
        # The sequence of each model's last change when it was last looked at. A rollback may take
        # changes away, but later ones always have later sequences.
        self._changes: dict[Model, int] = {}
        self._watched: dict[Model, _Watched] = {}
        # For each model, the meter between points, and its state at the last point.
        self._meters: dict[Model, tuple[Meter, tuple[float, ...]]] = {}
        self._closed = False

    async def run(self) -> None:
        """Watch the models once a second, from the server's readiness until cancelled."""
        await asyncio.wait([self._engine.ready])
        writing: asyncio.Task[None] | None = None
        ticks = 0
        while not self._closed:
            await asyncio.sleep(_EVENT_SECONDS)
            try:
                await self._warn()
                await self._publish()
                if ticks % POINT_SECONDS == 0 and (writing is None or writing.done()):
                    writing = asyncio.create_task(asyncio.to_thread(self._write_points))
            except Exception:  # listeners see nothing new, but everything else goes on
                logger.exception("the state of the models could not be shown")
            ticks += 1

    def listen(self, model: Model, last_id: str | None) -> AsyncIterator[bytes]:
        """Yield the events of a model from now on; see `Channel.listen`."""
        watched = self._watched.get(model)
        if watched is None:
            watched = self._watched[model] = _Watched()
            self._look(model, watched)
        if self._closed:
            watched.channel.close("stopping")
        return watched.channel.listen(last_id)

    async def history(self, model: Model) -> dict[str, Any]:
        """The numbers of a model over the last hours: lists by name, each as long as `time`."""
        return await asyncio.to_thread(self._points.read, model.id)

    def close(self) -> None:
        """End all listeners, and watch no longer."""
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
                    self._look(model, watched)
                except Exception:  # the others are shown
                    logger.exception("model not shown: model=%s", model.name)
                await asyncio.sleep(0)  # requests get their turn between two models
            elif now - watched.last_listened > _IDLE_SECONDS:
                del self._watched[model]

    async def _warn(self) -> None:
        """Note the changes that are new, and send them to listeners."""
        models = self._engine.recovered()
        last = {model: _last_change(model) for model in models}
        changed = [model for model in models if last[model] != self._changes.get(model, 0)]
        new = await asyncio.to_thread(self._note, changed) if changed else []
        self._changes = last
        if new:
            of_id = {model.id: model for model in changed}
            for alert in new:
                watched = self._watched.get(of_id[alert.model_id])
                if watched is not None:
                    watched.channel.publish("alert", alert.content)

    def _note(self, models: list[Model]) -> list[Alert]:
        new = self._alerts.note(alert for model in models for alert in alerts_of(model))
        for alert in new:
            change = alert.content
            logger.warning(
                "model %s: the predictions of the head %s became worse about %d samples before %d: "
                "mean loss %.3g, before %.3g",
                *(change[name] for name in ("model", "head", "samples", "sequence")),
                *(change[name] for name in ("after", "before")),
            )
        return new

    def _look(self, model: Model, watched: _Watched) -> None:
        read_counters(watched.meter, time.monotonic(), model)
        waiting = self._engine.waiting().samples
        followers = self._engine.challengers.of(model)
        watched.channel.publish("state", picture(model, watched.meter, waiting, followers))

    def _write_points(self) -> None:
        """Write a point of each model that has changed. On a thread of its own."""
        models = self._engine.recovered()
        live = {model.id for model in models}
        self._meters = {model: kept for model, kept in self._meters.items() if model.id in live}
        found = [point for model in models if (point := self._point(model)) is not None]
        self._points.write(found, live)
        self._alerts.forget(live)

    def _point(self, model: Model) -> Point | None:
        meter, before = self._meters.get(model, (Meter(_READINGS_OF_POINTS), ()))
        state = (model.published.sequence, *(c.predicted for c in model.counts.values()))
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
