"""The leader's announcements: what all workers must know about the leader and each other."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.cluster.channel import Channel, FrameKind, LeaderState, ResourceUse
from wolfstream.service.engine.facade import Engine
from wolfstream.service.errors import NotLeader, NotReady, UnknownModel
from wolfstream.service.model.live import Model
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.model import ModelSpec

# Time between two checks for changes that nobody reports, such as phases and recovered models.
_CHECK_SECONDS = 0.05
# Time between two announcements of when the fleet was last heard.
_HEARD_SECONDS = 0.5
# The phase of a replica that has lost contact with its fleet.
_ALONE = "without the other replicas of its fleet"


class FleetLink(Protocol):
    """A replica's link to its fleet."""

    def check(self) -> None:
        """Raise NotReady if the replica has not heard enough of its fleet to answer."""

    @property
    def lag_seconds(self) -> float:
        """Seconds since the replica could last hear the others; 0 while it can."""


class _Worker:
    """A connected worker.

    Attributes:
        channel: to the worker.
        use: what its requests use.
        specs: number of a model -> spec that was announced to the worker.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.use = ResourceUse()
        self.specs: dict[int, ModelSpec] = {}


class Announcements:
    """Informs all workers of the phase, the models, the keys, and the use of other processes."""

    def __init__(self, engine: Engine, held: Callable[[], int], fleet: FleetLink | None) -> None:
        """Begin without workers.

        Args:
            engine: of this process.
            held: returns the bytes that requests hold in this process.
            fleet: the link to the fleet; None for a single server.
        """
        self._engine, self._held, self._fleet = engine, held, fleet
        self._heard_due = 0.0  # when to announce HEARD next, by time.monotonic()
        self._workers: dict[Channel, _Worker] = {}
        self._models: dict[int, Model] = {}  # number -> announced model
        self._specs: dict[int, ModelSpec] = {}  # number -> announced spec
        self._model_changes = -1  # `engine.model_changes` when `_models` was read
        self._announced_held = 0  # result of `held`, as last announced
        self._state = LeaderState()  # as last announced
        engine.watch(self._announce_published)

    def __len__(self) -> int:
        return len(self._workers)

    @property
    def use(self) -> ResourceUse:
        """What the requests to all workers use."""
        total = ResourceUse()
        for worker in self._workers.values():
            total = total.plus(worker.use)
        return total

    def channels(self) -> list[Channel]:
        """Return the channels to all connected workers."""
        return list(self._workers)

    def model(self, model_id: int) -> Model:
        """Return an announced model. Raises UnknownModel, and NotLeader in a fleet."""
        model = self._models.get(model_id)
        if model is None and self._fleet is not None:
            raise NotLeader(
                "this replica stopped leading the model while the request was on its way"
            )
        if model is None:
            raise UnknownModel("the model was deleted while the request was on its way")
        return model

    def add_predicted(
        self, model_id: int, head: HeadName, rows: int, requests: int, seconds: float
    ) -> None:
        """Count rows that a worker has predicted, unless their model was deleted.

        Args:
            model_id: number of the model.
            head: the head that predicted.
            rows: number of rows.
            requests: number of requests with these rows.
            seconds: the sum of the durations of these requests.
        """
        if model_id in self._models:
            counts = self._models[model_id].counts[head]
            counts.predicted += rows
            counts.predict_requests += requests
            counts.predict_seconds += seconds

    def connect(self, channel: Channel) -> None:
        """Announce everything to a new worker, and changes from now on."""
        worker = self._workers[channel] = _Worker(channel)
        channel.send(FrameKind.STATE, *self._state)
        self._announce_models(worker)
        self._announce_use()

    def disconnect(self, channel: Channel) -> None:
        """Forget a worker that is gone."""
        if self._workers.pop(channel, None) is not None:
            self._announce_use()

    def set_use(self, channel: Channel, use: ResourceUse) -> None:
        """Record what the requests to a worker use, and announce it to the others."""
        self._workers[channel].use = use
        self._announce_use()

    def announce_spent(self, key_id: str, samples: int, source: Channel | None = None) -> None:
        """Announce samples that were admitted under a key's quota.

        Args:
            key_id: id of the key.
            samples: number of samples.
            source: the worker that has admitted them; None for this process.
        """
        for channel in self._workers:
            if channel is not source:
                channel.send(FrameKind.SPENT, key_id, samples)

    def announce_keys(self, keys: bytes | None) -> None:
        """Announce the valid API keys, encoded by `access.key_file`."""
        for channel in self._workers:
            channel.send(FrameKind.KEYS, keys)

    async def run(self) -> None:
        """Announce changes of phase, models and use until cancelled."""
        while True:
            self._announce_changes()
            if self._held() != self._announced_held:
                self._announce_use()
            if self._fleet is not None and time.monotonic() >= self._heard_due:
                self._announce_heard(self._fleet)
            await asyncio.sleep(_CHECK_SECONDS)

    def _announce_heard(self, fleet: FleetLink) -> None:
        """Announce when the fleet was last heard, by the clock that all processes share.

        So a worker also notices if this process is suspended and announces nothing.
        """
        self._heard_due = time.monotonic() + _HEARD_SECONDS
        for channel in self._workers:
            channel.send(FrameKind.HEARD, boot_seconds() - fleet.lag_seconds)

    def _announce_published(self, models: Sequence[Model]) -> None:
        """Announce new models and specs before the requests that caused them are answered."""
        if self._engine.model_changes != self._model_changes or any(
            self._specs.get(model.id) is not model.spec for model in models
        ):
            self._announce_changes()

    def _announce_changes(self) -> None:
        """Announce a changed phase, and new, deleted and changed models."""
        engine, state = self._engine, self._present_state()
        if engine.model_changes != self._model_changes:
            self._model_changes = engine.model_changes
            self._models = {model.id: model for model in engine.recovered()}
        specs = {model.id: model.spec for model in self._models.values()}
        if specs.keys() != self._specs.keys() or any(
            spec is not self._specs[model_id] for model_id, spec in specs.items()
        ):
            self._specs = specs
            for worker in self._workers.values():
                self._announce_models(worker)
        if state != self._state:
            self._state = state
            for channel in self._workers:
                channel.send(FrameKind.STATE, *state)

    def _present_state(self) -> LeaderState:
        engine = self._engine
        state = LeaderState(
            engine.phase,
            engine.accepting or engine.failed,
            engine.accepting,
            engine.readiness.reached,
            engine.readiness.reached and not engine.readiness.progress,
        )
        if self._fleet is not None and state.readable:
            try:
                self._fleet.check()
            except NotReady:
                return state._replace(text=_ALONE, readable=False, accepting=False)
        return state

    def _announce_models(self, worker: _Worker) -> None:
        """Send a worker the models that it does not know, changed specs, and deletions."""
        models = [
            [model_id, self._models[model_id].name, spec.plain()]
            for model_id, spec in self._specs.items()
            if worker.specs.get(model_id) is not spec
        ]
        deleted = [model_id for model_id in worker.specs if model_id not in self._specs]
        worker.specs = self._specs
        worker.channel.send(FrameKind.MODELS, models, deleted)

    def _announce_use(self) -> None:
        """Announce to each worker what the other workers and this process use."""
        use, self._announced_held = self.use, self._held()
        total = use._replace(held_bytes=use.held_bytes + self._announced_held)
        for worker in self._workers.values():
            worker.channel.send(FrameKind.USE, *total.minus(worker.use))
