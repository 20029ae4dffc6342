"""The engine: the event loop's side of learning.

    submit -> queue -> (writer) append + fsync -> absorb block -> publish view -> acknowledge

Everything here runs on the event loop, except `_run`, which is the writer's thread.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from service.admission import Answer, LearnRequest, Reply
from service.errors import (
    ModelBroken,
    NotReached,
    NotReady,
    Refusal,
    SnapshotFailed,
    StorageFailed,
    TooManyModels,
    UnknownModel,
)
from service.fits import Fit, Window
from service.metrics import Metrics
from service.model import Model
from service.names import n_bytes
from service.queue import GroupQueue, Waiting
from service.refits import Job, Refits
from service.samples import Samples
from service.settings import Settings
from service.spec import HeadName, ModelSpec
from service.writer import Order, Writer

logger = logging.getLogger(__name__)

# A short text and its place in a list, about.
_LABEL_BYTES = 64


class Engine:
    """Live models behind one writer.

    warm_up: compiles the numerics; runs on the writer's thread before it is ready.
    loads: model files, by the names of the models that they become after recovery.
    """

    def __init__(
        self, settings: Settings, warm_up: Callable[[], None], loads: Mapping[str, Path]
    ) -> None:
        self._settings = settings
        self._loads = loads
        self._warm_up = warm_up
        self._queue: GroupQueue[LearnRequest | Order] = GroupQueue(
            settings.queue_samples, settings.queue_bytes, settings.group_samples
        )
        self.refits = Refits(self._take_window, self._keep_fit, settings.refits)
        self._waiters: dict[Model, list[tuple[int, asyncio.Future[None]]]] = {}
        self._accepting = False
        # Why nothing is taken any more; empty while something is, or will be.
        self._stopped = ""
        self._loop: asyncio.AbstractEventLoop
        self._writer: Writer
        self._thread: threading.Thread
        self.ready: asyncio.Future[None]

    def start(self) -> None:
        """Open the data directory and begin recovery; `ready` is done when it is over.

        Raises StartupError where the log cannot be opened; `ready` raises what recovery finds.
        """
        self._loop = asyncio.get_running_loop()
        self._writer = Writer(self._settings, self._acknowledge)
        self.ready = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="writer")
        self._thread.start()

    async def stop(self) -> None:
        """Accept nothing more, learn what was accepted, save a snapshot of each model."""
        self.refuse()
        await self.refits.stop()
        self._queue.close()
        await asyncio.to_thread(self._thread.join)

    def refuse(self) -> None:
        """From now on every new request is NotReady; what was accepted goes on, refits end."""
        self._end("draining: it finishes what it has accepted, then it ends")

    def _end(self, phase: str) -> None:
        self._accepting = False
        self._stopped = self._stopped or phase
        self.refits.ask_to_stop()

    @property
    def accepting(self) -> bool:
        """Whether requests are taken: recovered, warm and not stopping."""
        return self._accepting

    @property
    def phase(self) -> str:
        """What the server is doing: ready, or what keeps it from that."""
        return self._stopped or ("ready" if self._accepting else self._writer.phase)

    @property
    def metrics(self) -> Metrics:
        """What is timed."""
        return self._writer.metrics

    def waiting(self) -> Waiting:
        """What waits to be learned."""
        return self._queue.waiting()

    def is_model(self, name: str) -> bool:
        """Whether there is a model of this name, in any phase."""
        return name in self._writer.models

    def recovered(self) -> list[Model]:
        """All models that are there, in any phase; on any thread."""
        return list(self._writer.models.copy().values())

    def model(self, name: str) -> Model:
        """The live model of this name. Raises NotReady, UnknownModel."""
        self._check_accepting()
        model = self._writer.models.get(name)
        if model is None:
            raise UnknownModel(f"there is no model {name!r}; create it with PUT /v1/models/{name}")
        return model

    def models(self) -> list[Model]:
        """All live models by name. Raises NotReady."""
        self._check_accepting()
        return [model for _, model in sorted(self._writer.models.copy().items())]

    def submit(
        self,
        model: Model,
        head: HeadName,
        samples: Samples,
        key: bytes | None = None,
        durable: "asyncio.Future[Answer] | None" = None,
    ) -> "asyncio.Future[Answer]":
        """Queue samples; the future is done once they are on disk, learned and published.

        key: what came under it before is not learned again, but answered with the first answer
        and `"replayed": true`. durable: done, with the sequence, once the samples are on disk.

        Requests are learned in the order of these calls. Raises NotReady, QueueFull and
        ModelBroken at once; the future raises what the writer finds.
        """
        answer: asyncio.Future[Answer] = self._loop.create_future()
        n_samples = len(samples.y)
        size = n_bytes(samples.X) + _LABEL_BYTES * n_samples
        counts = model.counts[head]
        counts.received += n_samples
        try:
            self._check_usable(model)
            now = time.monotonic()
            request = LearnRequest(model, head, samples, answer, now, key, durable)
            self._queue.put(request, n_samples, size)
        except Refusal:
            counts.refused += n_samples
            raise
        return answer

    async def create(self, name: str, spec: ModelSpec) -> tuple[Model, bool]:
        """A model of this spec and whether it is new.

        Raises ModelExists, TooManyModels, StorageFailed.
        """
        created: tuple[Model, bool] = await self._in_order(lambda: self._create(name, spec))
        return created

    async def delete(self, name: str) -> None:
        """Forget a model with its log and snapshots. Raises UnknownModel, StorageFailed."""
        model = self.model(name)
        await self._in_order(lambda: self._writer.delete(model))
        self.refits.forget(model)

    def refit(self, model: Model) -> Job:
        """The job that fits a model's window anew. Raises JobsFull, ModelBroken, NotReady."""
        self._check_usable(model)
        return self.refits.start(model)

    async def history(self, model: Model) -> list[dict[str, Any]]:
        """The kept snapshots of a model, newest first. Raises NotReady."""
        self._check_accepting()
        return await asyncio.to_thread(self._writer.history, model)

    async def snapshot(self, model: Model) -> int:
        """Save a snapshot; its sequence. Raises ModelBroken, SnapshotFailed, UnknownModel."""
        self._check_usable(model)
        sequence, saving = await self._in_order(lambda: self._writer.snapshot(model))
        try:
            # A client that leaves does not take the snapshot with it.
            await asyncio.shield(asyncio.wrap_future(saving))
        except (OSError, MemoryError) as error:
            raise SnapshotFailed(f"{error}; the log is kept, and nothing is lost") from None
        await self._in_order(self._writer.saves.finish, 0)
        return int(sequence)

    async def roll_back(self, model: Model, sequence: int) -> dict[str, Any]:
        """Go back to a snapshot; the model's description.

        Raises StorageFailed, UnknownModel, UnknownSnapshot, UnusableSnapshot.
        """
        told: dict[str, Any] = await self._in_order(lambda: self._writer.roll_back(model, sequence))
        self.refits.rolled_back(model)
        return told

    async def reached(self, model: Model, sequence: int) -> None:
        """Wait until the published view of a model has a sequence. Raises NotReached."""
        if model.published.sequence >= sequence:
            return
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.setdefault(model, []).append((sequence, waiter))
        try:
            await asyncio.wait_for(waiter, self._settings.wait_seconds)
        except TimeoutError:
            raise NotReached(
                f"model {model.name!r} is at sequence {model.published.sequence}, "
                f"{sequence} was asked for"
            ) from None
        finally:
            self._forget(model, waiter)

    def _check_accepting(self) -> None:
        if not self._accepting:
            raise NotReady(f"the server is {self.phase}")

    def _check_usable(self, model: Model) -> None:
        self._check_accepting()
        if model.broken:
            raise ModelBroken(f"model {model.name!r}: {model.broken}")

    async def _in_order(self, run: Callable[[], Any], samples: int = 1) -> Any:
        self._check_accepting()
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._queue.put(Order(run, answer), samples, 0)
        return await answer

    def _create(self, name: str, spec: ModelSpec) -> tuple[Model, bool]:
        """On the writer's thread, where nothing else is created meanwhile."""
        models = self._writer.models
        if name not in models and len(models) >= self._settings.models:
            raise TooManyModels(
                f"this server has {len(models)} models and may have {self._settings.models}; "
                "DELETE one that nobody uses"
            )
        return self._writer.create(name, spec)

    # A refit that has begun finds room in any queue.
    async def _take_window(self, model: Model) -> Window:
        window: Window = await self._in_order(lambda: self._writer.window(model), samples=0)
        return window

    async def _keep_fit(self, model: Model, window: Window, fit: Fit) -> dict[str, Any]:
        told: dict[str, Any] = await self._in_order(
            lambda: self._writer.keep(model, window, fit), 0
        )
        return told

    def _forget(self, model: Model, waiter: "asyncio.Future[None]") -> None:
        left = [item for item in self._waiters.get(model, []) if item[1] is not waiter]
        if left:
            self._waiters[model] = left
        else:
            self._waiters.pop(model, None)

    def _run(self) -> None:
        try:
            self._writer.recover()
            for i, (name, path) in enumerate(self._loads.items(), 1):
                self._writer.phase = f"loading model {i} of {len(self._loads)}"
                self._writer.load(name, path)
            self._writer.phase = "compiling"
            logger.info("%d models; compiling", len(self._writer.models))
            self._warm_up()
        except Exception as error:
            self._loop.call_soon_threadsafe(self.ready.set_exception, error)
            return
        self._loop.call_soon_threadsafe(self._open)
        for group in self._queue.groups():
            try:
                self._writer.handle(group)
            except Exception:
                logger.exception("the writer failed; restart the server to recover from the log")
                self._loop.call_soon_threadsafe(self._fail, group)
                return
        self._writer.close()

    def _fail(self, group: list[LearnRequest | Order]) -> None:
        """What the failed writer still owed is unknown: say so, and take nothing more."""
        self._end("broken: its writer failed; restart it to recover from the log")
        error = StorageFailed("the server failed; the samples may or may not have been learned")
        self._deliver([(item.answer, error) for item in group], [])

    def _open(self) -> None:
        self._accepting = not self._stopped
        self.ready.set_result(None)

    def _acknowledge(self, replies: list[Reply], changed: Iterable[Model]) -> None:
        """Deliver a group's replies: one wake-up of the event loop for all of them."""
        self._loop.call_soon_threadsafe(self._deliver, replies, list(changed))

    def _deliver(self, replies: list[Reply], changed: list[Model]) -> None:
        for answer, result in replies:
            if answer.done():  # the client is gone
                continue
            if isinstance(result, Exception):
                answer.set_exception(result)
            else:
                answer.set_result(result)
        for model in changed:
            for sequence, waiter in self._waiters.get(model, []):
                if model.published.sequence >= sequence and not waiter.done():
                    waiter.set_result(None)
