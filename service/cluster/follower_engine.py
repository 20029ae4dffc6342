"""A worker's engine, which predicts with copies of views and sends samples to the leader."""

import asyncio
import logging
import threading
from typing import Any

from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.cluster.calls import Calls
from wolfstream.service.cluster.channel import Channel, FrameKind, LeaderState, labels_to_plain
from wolfstream.service.cluster.versions import ViewVersion
from wolfstream.service.cluster.worker_views import WorkerViews
from wolfstream.service.compilation.compiled_parts import (
    LoadedParts,
    load_later_parts,
    needed_first,
    parts_for,
)
from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.delivery import check_lineage
from wolfstream.service.engine.queue_items import Response
from wolfstream.service.engine.readiness import will_be_sparse
from wolfstream.service.engine.serving import RequestRows
from wolfstream.service.errors import (
    NotLeader,
    NotReached,
    NotReady,
    QueueFull,
    Refusal,
    UnknownModel,
)
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.model.revision import Revision
from wolfstream.service.samples.ids import LateLabels, RowId
from wolfstream.service.samples.record import rows_record, to_record
from wolfstream.service.samples.validation import Samples
from wolfstream.service.settings import Settings
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.spec.stored import read_stored_spec
from wolfstream.solver.compile_cache import is_complete

logger = logging.getLogger(__name__)

# How late the leader's announcements of when it last heard its fleet, twice a second, may arrive.
_HEARD_LATE_SECONDS = 1.0


class FollowerEngine:
    """An `engine.serving.ServingEngine` for models whose learner is in another process.

    Attributes:
        metrics: of this worker.
        warm: set once the compiled code of the default model's predictions is loaded.
    """

    def __init__(self, settings: Settings) -> None:
        """Begin without a channel to the leader.

        Args:
            settings: of the server.
        """
        self._settings = settings
        self.metrics = Metrics()
        self.warm = asyncio.Event()
        self._state = LeaderState()  # as last announced
        # When the leader last heard its fleet, by boot_seconds().
        self._heard = boot_seconds()
        self._state_changed = asyncio.Event()  # set, and replaced, with each state
        self._models: dict[str, Model] = {}  # name -> announced model
        self._calls = Calls()
        self._views = WorkerViews(self._calls, settings.wait_seconds)
        # (model, whether its rows are sparse), if the compiled code for its predictions is loaded.
        self._loaded: set[tuple[Model, bool]] = set()
        self._code = LoadedParts()
        self._loading = asyncio.Lock()  # held while parts are loaded

    def connect(self, channel: Channel) -> None:
        """Start calling the leader."""
        self._calls.channel = channel

    def take(self, frame: list[Any]) -> bool:
        """Handle a frame from the leader; return False if it is not for the engine."""
        kind, *fields = frame
        match kind:
            case FrameKind.ANSWER | FrameKind.REFUSED | FrameKind.DURABLE:
                self._calls.take_reply(FrameKind(kind), *fields)
            case FrameKind.STATE:
                self._state = LeaderState(*fields)
                self._state_changed.set()
                self._state_changed = asyncio.Event()
            case FrameKind.HEARD:
                (self._heard,) = fields
            case FrameKind.MODELS:
                self._take_models(*fields)
            case _:
                return False
        return True

    async def load(self) -> None:
        """Load the code of the default model's predictions, once the leader has compiled it."""
        while not (self._state.ready or is_complete()):
            await self._state_changed.wait()
        async with self._loading:
            await asyncio.to_thread(self._code.load, needed_first())
        self.warm.set()
        threading.Thread(target=load_later_parts, name="later parts", daemon=True).start()

    @property
    def phase(self) -> str:
        """The server's phase: "ready", or the reason why it is not."""
        return self._state.text

    def models(self) -> list[Model]:
        """Return all models, in any phase."""
        return list(self._models.values())

    def is_model(self, name: str) -> bool:
        """Return whether a model has this name, in any phase."""
        return name in self._models

    def model(self, name: str) -> Model:
        """Return the model of this name. Raises NotReady, UnknownModel, NotLeader."""
        if not self._state.readable:
            raise NotReady(f"the server is {self._state.text}")
        self._check_heard()
        model = self._models.get(name)
        if model is None:
            raise self._not_announced(name)
        return model

    def _check_heard(self) -> None:
        """Raise NotReady if it is too long ago that the leader heard its fleet."""
        lag = boot_seconds() - self._heard
        if self._settings.fleet and lag > self._settings.max_lag_seconds + _HEARD_LATE_SECONDS:
            raise NotReady(
                f"this replica has not heard of its fleet for {lag:.0f} s: other replicas may lead "
                "the models by now, and have learned more"
            )

    def _not_announced(self, name: str) -> Refusal:
        """Return the refusal for an unknown model; in a fleet, another replica may lead it."""
        if self._settings.fleet:
            return NotLeader(f"this replica does not lead model {name!r}")
        return UnknownModel.named(name)

    async def compiled(
        self, model: Model, rows: RequestRows | None, seconds: float | None = None
    ) -> None:
        """Wait until the code that a model runs on such rows is compiled. Raises NotReady.

        While the leader compiles, this needs the view, which shows whether the rows become sparse.
        """
        if self._state.compiled:
            return
        await self._views.subscribe(model)
        await self._compiled_for(model, rows, seconds)

    async def view(
        self,
        model: Model,
        head: HeadName,
        rows: RequestRows | None,
        awaited: Revision | None = None,
    ) -> ModelView:
        """Return this worker's copy of a view; see `ServingEngine.view`.

        If the head is missing or cannot predict yet, the leader is asked first: a new spec may have
        added it, or it may have learned enough a moment ago.
        """
        await self._views.subscribe(model)
        if awaited is not None:
            await self._reach(model, awaited)
        elif head not in model.published.heads or model.published.heads[head].lacks:
            await self._reach(model, Revision(None, None))
        await self._load_for(model, rows)
        self._check_heard()
        return model.published

    async def revision(self, model: Model) -> Revision:
        """Return the present epoch and sequence of a model."""
        epoch, sequence, _ = await self._calls.answer(
            FrameKind.REACHED, model.id, None, None, False
        )
        return Revision(epoch, sequence)

    def submit(
        self,
        model: Model,
        head: HeadName,
        samples: Samples,
        key: bytes | None = None,
        durable: "asyncio.Future[Response] | None" = None,
        expected: tuple[Revision, ...] = (),
    ) -> "asyncio.Future[Response]":
        """Send samples to the leader; see `Engine.submit`. Raises NotReady, QueueFull."""
        self._check_room()
        arguments = (model.id, head, to_record(samples), key, durable is not None, expected)
        return self._calls.begin(FrameKind.LEARN, *arguments, durable=durable)

    def label(
        self,
        model: Model,
        head: HeadName,
        labels: LateLabels,
        expected: tuple[Revision, ...] = (),
    ) -> "asyncio.Future[Response]":
        """Send labels to the leader; see `Engine.label`. Raises NotReady, QueueFull."""
        self._check_room()
        return self._calls.begin(FrameKind.LABEL, model.id, head, labels_to_plain(labels), expected)

    def allowing(self, max_lag_seconds: float) -> "FollowerEngine":
        """Return self: the leader answers such calls (`web.transport.leader_proxy`)."""
        del max_lag_seconds
        return self

    def check_stores_rows(self, model: Model) -> None:
        """Raise NotReady or QueueFull unless rows may be sent; the leader checks the rest."""
        del model
        self._check_room()

    async def store_waiting_rows(
        self, model: Model, ids: list[RowId], rows: RequestRows, response: Response
    ) -> Response:
        """Have the leader store predicted rows; see `Engine.store_waiting_rows`."""
        self.check_stores_rows(model)
        arguments = (model.id, ids, rows_record(rows), response)
        answer: Response = await self._calls.answer(FrameKind.STORE_ROWS, *arguments)
        return answer

    def _check_room(self) -> None:
        """Raise NotReady unless samples are accepted, QueueFull if too many bytes wait."""
        if not self._state.accepting:
            raise NotReady(f"the server is {self._state.text}")
        waiting = 0 if self._calls.channel is None else self._calls.channel.waiting_bytes
        if waiting > self._settings.shares.waiting:
            raise QueueFull(
                f"{waiting} bytes of samples wait to be learned, and the bound is "
                f"{self._settings.shares.waiting}; try again"
            )

    def _take_models(self, models: list[list[Any]], deleted: list[int]) -> None:
        """Update the models.

        Args:
            models: [number, name, spec] of each new or changed model.
            deleted: the numbers of deleted models.
        """
        changed = {model for model in self._models.values() if model.id in set(deleted)}
        for model in changed:
            del self._models[model.name]
            self._views.drop(model, self._not_announced(model.name))
        for model_id, name, spec in models:
            if name in self._models:
                self._models[name].take_spec(read_stored_spec(spec))
                changed.add(self._models[name])
            else:
                self._models[name] = Model(model_id, name, read_stored_spec(spec))
        self._loaded = {item for item in self._loaded if item[0] not in changed}

    async def _reach(self, model: Model, awaited: Revision) -> None:
        """Wait until this worker's copy of a view has reached a revision."""
        if _has_reached(model.published, awaited):
            return
        arguments = (model.id, awaited.epoch, awaited.sequence, True)
        _, _, version = await self._calls.answer(FrameKind.REACHED, *arguments)
        try:
            await self._views.reach(model, ViewVersion(*version))
        except TimeoutError:
            if self._settings.fleet and not self._views.holds(model):
                raise self._not_announced(model.name) from None
            raise NotReached(
                f"model {model.name!r} is at sequence {model.published.sequence} here, "
                f"not yet at {awaited}"
            ) from None
        check_lineage(model, awaited)

    async def _load_for(self, model: Model, rows: RequestRows | None) -> None:
        """Load the compiled code for a prediction into this process."""
        sparse = await will_be_sparse(model, rows)
        if (model, sparse) in self._loaded:
            return
        await self._compiled_for(model, rows, None)
        async with self._loading:
            if (model, sparse) not in self._loaded:
                await asyncio.to_thread(self._code.load, parts_for(model.spec, sparse))
                self._loaded.add((model, sparse))

    async def _compiled_for(
        self, model: Model, rows: RequestRows | None, seconds: float | None
    ) -> None:
        if not self._state.compiled:
            sparse = await will_be_sparse(model, rows)
            await self._calls.answer(FrameKind.COMPILED, model.id, sparse, seconds)


def _has_reached(published: ModelView, awaited: Revision) -> bool:
    if awaited.sequence is None or published.sequence < awaited.sequence:
        return False
    return awaited.epoch in (None, published.epoch)
