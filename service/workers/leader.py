"""The leader's side of the channels: it does what workers ask, and tells them what they must know.

Learning calls are submitted in the order in which they come, before the next frame is looked at, so
that a connection's samples are learned in their order. Everything runs on the event loop.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from service.diagnostics.metrics import Histogram
from service.engine.admission import Answer, LearnRequest
from service.engine.facade import Engine
from service.errors import (
    InDoubt,
    ModelBroken,
    NotLeader,
    NotReady,
    Refusal,
    ServerFailed,
    UnknownModel,
)
from service.model.live import Model
from service.model.moment import Moment
from service.samples.predicted import rows_of
from service.samples.record import from_record
from service.spec.model import ModelSpec
from service.views.followings import Followings
from service.views.versions import Position
from service.workers.channel import Channel, Kind
from service.workers.messages import (
    State,
    Use,
    count_more,
    labels_from_plain,
    moments,
    refused,
)

logger = logging.getLogger(__name__)

# Between two looks at what nobody announces: phases, models during recovery.
_LOOK_SECONDS = 0.05
_REPORT_SECONDS = 1.0
# What a replica is doing that has lost its fleet.
_ALONE = "without the other replicas of its fleet"

# The time from request to response by route, method and class of status.
Requests = dict[tuple[str, str, str], Histogram]


class _Worker:
    """A worker that is connected."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.use = Use()
        self.specs: dict[int, ModelSpec] = {}


class Leader:
    """What workers ask of the process that learns.

    followings: the views that they follow. requests: those of this process and, once reported,
    theirs. spent: called with a key's id and the samples that they have admitted under its quota.
    held: the bytes that requests hold in this process. check: of a replica of a fleet, raises
    NotReady where it knows too little of the others to answer; None of a server of its own.
    """

    def __init__(
        self,
        engine: Engine,
        followings: Followings,
        spent: Callable[[str, int], None],
        held: Callable[[], int],
        check: Callable[[], None] | None = None,
    ) -> None:
        self._engine, self._followings, self._check = engine, followings, check
        self._spent, self._held = spent, held
        self.requests: Requests = {}
        self._workers: dict[Channel, _Worker] = {}
        self._models: dict[int, Model] = {}
        self._specs: dict[int, ModelSpec] = {}
        self._changes = -1
        self._announced_held = 0
        self._state = State()
        self._tasks: dict[Channel, set[asyncio.Task[None]]] = {}
        self._reports: dict[Channel, asyncio.Future[None]] = {}
        self._calls: dict[int, Callable[..., None]] = {
            Kind.LEARN: self._learn,
            Kind.LABEL: self._label,
            Kind.REMEMBER: self._later(self._remember),
            Kind.COMPILED: self._later(self._compiled),
            Kind.REACHED: self._later(self._reached),
            Kind.NEWER: self._later(self._newer),
        }
        engine.watch(self._changed)

    @property
    def use(self) -> Use:
        """What requests to all workers use."""
        total = Use()
        for worker in self._workers.values():
            total = total.plus(worker.use)
        return total

    def __len__(self) -> int:
        return len(self._workers)

    def add(self, channel: Channel) -> None:
        """Serve a worker that has connected."""
        worker = self._workers[channel] = _Worker(channel)
        channel.send(Kind.STATE, *self._state)
        self._tell_models(worker)
        self._tell_use()

    def lose(self, channel: Channel) -> None:
        """Forget a worker that is gone."""
        for task in self._tasks.pop(channel, ()):
            task.cancel()
        if self._workers.pop(channel, None) is not None:
            self._tell_use()
        if (report := self._reports.pop(channel, None)) and not report.done():
            report.set_result(None)

    def take(self, channel: Channel, frame: list[Any]) -> None:
        """Do what a frame says."""
        kind, *given = frame
        if kind in self._calls:
            call, *rest = given
            try:
                self._calls[kind](channel, call, *rest)
            except Refusal as error:
                channel.send(Kind.REFUSED, call, *refused(error))
            except Exception as failure:  # the others on this channel are served
                logger.exception("a call of a worker failed")
                unexpected = ServerFailed(f"{failure!r}; nothing was learned")
                channel.send(Kind.REFUSED, call, *refused(unexpected))
        elif kind == Kind.USE:
            self._workers[channel].use = Use(*given)
            self._tell_use()
        elif kind == Kind.SPENT:
            key_id, samples = given
            self._spent(key_id, samples)
            self.tell_spent(key_id, samples, but=channel)
        elif kind == Kind.REPORT:
            self._count(channel, *given)

    def tell_spent(self, key_id: str, samples: int, but: Channel | None = None) -> None:
        """Tell workers what was admitted under a key's quota; not the one that did."""
        for channel in self._workers:
            if channel is not but:
                channel.send(Kind.SPENT, key_id, samples)

    def tell_keys(self, keys: bytes | None) -> None:
        """Tell workers which keys are in force."""
        for channel in self._workers:
            channel.send(Kind.KEYS, keys)

    async def run(self) -> None:
        """Tell workers of phases and models, until cancelled."""
        while True:
            self._look()
            if self._held() != self._announced_held:
                self._tell_use()
            await asyncio.sleep(_LOOK_SECONDS)

    async def report(self) -> None:
        """Add to the counts of this process what workers have counted until now."""
        loop = asyncio.get_running_loop()
        for channel in self._workers:
            if channel not in self._reports:
                self._reports[channel] = loop.create_future()
                channel.send(Kind.REPORT)
        if self._reports:
            await asyncio.wait(self._reports.values(), timeout=_REPORT_SECONDS)

    def _count(self, channel: Channel, given: dict[str, Any]) -> None:
        for *labels, counts in given["requests"]:
            route, method, status = labels
            histogram = self.requests.setdefault((route, method, status), Histogram())
            count_more(histogram, counts)
        count_more(self._engine.metrics.predict, given["predict"])
        for model_id, head, rows in given["predicted"]:
            if model_id in self._models:
                self._models[model_id].counts[head].predicted += rows
        if (report := self._reports.pop(channel, None)) and not report.done():
            report.set_result(None)

    def _changed(self, models: Sequence[Model]) -> None:
        """Called before those who wait for these models are answered."""
        if self._engine.model_changes != self._changes or any(
            self._specs.get(model.id) is not model.spec for model in models
        ):
            self._look()

    def _look(self) -> None:
        """Tell workers of another phase, and of models that came or went."""
        engine, state = self._engine, self._present_state()
        if engine.model_changes != self._changes:
            self._changes = engine.model_changes
            self._models = {model.id: model for model in engine.recovered()}
        specs = {model.id: model.spec for model in self._models.values()}
        if specs.keys() != self._specs.keys() or any(
            spec is not self._specs[model_id] for model_id, spec in specs.items()
        ):
            self._specs = specs
            for worker in self._workers.values():
                self._tell_models(worker)
        if state != self._state:
            self._state = state
            for channel in self._workers:
                channel.send(Kind.STATE, *state)

    def _present_state(self) -> State:
        engine = self._engine
        state = State(
            engine.phase,
            engine.accepting or engine.failed,
            engine.accepting,
            engine.readiness.reached,
            engine.readiness.reached and not engine.readiness.progress,
        )
        if self._check is not None and state.readable:
            try:
                self._check()
            except NotReady:
                return state._replace(text=_ALONE, readable=False, accepting=False)
        return state

    def _tell_models(self, worker: _Worker) -> None:
        """Tell a worker of models that are new to it, or have another spec, and of those gone."""
        models = [
            [model_id, self._models[model_id].name, spec.plain()]
            for model_id, spec in self._specs.items()
            if worker.specs.get(model_id) is not spec
        ]
        gone = [model_id for model_id in worker.specs if model_id not in self._specs]
        worker.specs = self._specs
        worker.channel.send(Kind.MODELS, models, gone)

    def _tell_use(self) -> None:
        """Tell each worker what the others use."""
        use, self._announced_held = self.use, self._held()
        total = use._replace(held_bytes=use.held_bytes + self._announced_held)
        for worker in self._workers.values():
            worker.channel.send(Kind.USE, *total.minus(worker.use))

    def _model(self, model_id: int) -> Model:
        model = self._models.get(model_id)
        if model is None and self._check is not None:
            raise NotLeader("the model was let go while the request was on its way")
        if model is None:
            raise UnknownModel("the model was deleted while the request was on its way")
        return model

    def _learn(
        self,
        channel: Channel,
        call: int,
        model_id: int,
        head: Any,
        record: bytes,
        key: bytes | None,
        wants_durable: bool,
        expected: list[list[Any]],
    ) -> None:
        model, samples = self._model(model_id), from_record(record)
        answer = _Reply(channel, call, Kind.ANSWER)
        durable = _Reply(channel, call, Kind.DURABLE) if wants_durable else None
        states, now = moments(expected), time.monotonic()
        self._engine.queue(
            LearnRequest(model, head, samples, answer, now, key, durable, states, record)
        )

    def _label(
        self,
        channel: Channel,
        call: int,
        model_id: int,
        head: Any,
        labels: list[Any],
        expected: list[list[Any]],
    ) -> None:
        model = self._model(model_id)
        answer = self._engine.label(model, head, labels_from_plain(labels), moments(expected))
        reply = _Reply(channel, call, Kind.ANSWER)
        answer.add_done_callback(lambda done: _settle(reply, done))

    async def _remember(
        self, model_id: int, ids: list[Any], rows: bytes, response: Answer
    ) -> Answer:
        return await self._engine.remember(self._model(model_id), ids, rows_of(rows), response)

    async def _compiled(self, model_id: int, sparse: bool, seconds: float | None) -> None:
        await self._engine.readiness.compiled_for(self._model(model_id).spec, sparse, seconds)

    async def _reached(
        self, model_id: int, epoch: str | None, sequence: int | None, followed: bool
    ) -> list[Any]:
        """The present moment of a model that has reached another one, and its view's version.

        followed: whether the version is asked for, which then follows soon.
        """
        model = self._model(model_id)
        if model.broken and not model.published.sequence:
            raise ModelBroken(f"model {model.name!r}: {model.broken}")
        await self._engine.reached(model, Moment(epoch, sequence))
        position = await self._followings.noted(model) if followed else None
        published = model.published
        return [published.epoch, published.sequence, position]

    async def _newer(self, model_id: int, held: tuple[str, int] | None) -> bytes:
        position = None if held is None else Position(*held)
        return await self._followings.newer(self._model(model_id), position)

    def _later(self, work: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., None]:
        """A call whose answer is waited for beside others."""

        def begin(channel: Channel, call: int, *given: Any) -> None:
            task = asyncio.create_task(self._answer(channel, call, work, given))
            tasks = self._tasks.setdefault(channel, set())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        return begin

    async def _answer(
        self,
        channel: Channel,
        call: int,
        work: Callable[..., Coroutine[Any, Any, Any]],
        given: tuple[Any, ...],
    ) -> None:
        try:
            result = await work(*given)
        except Refusal as error:
            channel.send(Kind.REFUSED, call, *refused(error))
        else:
            channel.send(Kind.ANSWER, call, result)


class _Reply:
    """Who waits at a worker: what it is told goes into the channel at once.

    A future would take a turn of the event loop for each request, and the leader has many.
    """

    __slots__ = ("_call", "_channel", "_kind")

    def __init__(self, channel: Channel, call: int, kind: Kind) -> None:
        self._channel, self._call, self._kind = channel, call, kind

    def done(self) -> bool:
        """Whether the worker is gone."""
        return not self._channel.open

    def set_result(self, result: Any) -> None:
        """Answer."""
        self._channel.send(self._kind, self._call, result)

    def set_exception(self, error: Exception) -> None:
        """Refuse."""
        if not isinstance(error, Refusal):
            error = InDoubt(f"the server failed: {error!r}; look at the model before you go on")
        self._channel.send(Kind.REFUSED, self._call, *refused(error))


def _settle(reply: _Reply, done: "asyncio.Future[Answer]") -> None:
    """Send a worker the result of a future."""
    error = done.exception()
    if isinstance(error, Exception):
        reply.set_exception(error)
    else:
        reply.set_result(done.result())
