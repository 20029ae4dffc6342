"""The engine: live models, and what the event loop can ask of them.

    submit -> queue -> (writer) append + fsync -> absorb block -> publish view -> acknowledge

Everything here runs on the event loop. All operations other than learning are in `engine.orders`.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.challenger_lookup import ChallengerLookup
from wolfstream.service.engine.delivery import Delivery, Watcher
from wolfstream.service.engine.followers import Followers
from wolfstream.service.engine.group_queue import GroupQueue, Waiting
from wolfstream.service.engine.intake import Intake
from wolfstream.service.engine.merges import Merges
from wolfstream.service.engine.orders import Orders
from wolfstream.service.engine.phase import Phase
from wolfstream.service.engine.queue_items import Item
from wolfstream.service.engine.readiness import Readiness
from wolfstream.service.engine.restored_models import RestoredModels
from wolfstream.service.engine.sequence_waiters import SequenceWaiters
from wolfstream.service.engine.waiter import Waiter
from wolfstream.service.engine.warm_up import WarmUp
from wolfstream.service.engine.writer import Writer
from wolfstream.service.engine.writer_thread import WriterThread
from wolfstream.service.errors import (
    InDoubt,
    NotLeader,
    ServerFailed,
    UnknownModel,
)
from wolfstream.service.model.live import Model
from wolfstream.service.model.moment import Moment
from wolfstream.service.model.published import Published
from wolfstream.service.settings import Settings
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.interfaces import Storage
from wolfstream.solver.prepare.named_rows import Rows


class Engine(Intake):
    """Live models and the one writer that changes them, with its `Intake`.

    It is created on the event loop and recovers in the background; `ready` is done after recovery,
    and raises what recovery raised.

    storage: is open; `stop` closes it.
    warm_up: compiles the numerics, on the writer's thread what the first requests need.
    loads: model files, by the names of the models that they become after recovery.
    """

    def __init__(
        self,
        settings: Settings,
        storage: Storage,
        warm_up: WarmUp,
        loads: Mapping[str, Path],
    ) -> None:
        queue: GroupQueue[Item] = GroupQueue(
            settings.queue_samples, settings.shares.waiting, settings.group_samples
        )
        super().__init__(queue, Phase())
        self._warm_up, self._in_fleet = warm_up, bool(settings.fleet)
        self._check_fresh: Callable[[], None] | None = None
        self.readiness = Readiness(self._phase, warm_up)
        self._waiters = SequenceWaiters(settings.wait_seconds)
        self._delivery = Delivery(self._waiters)
        self._replays = storage.journal.replays
        self._writer = Writer(storage, settings, self._delivery.from_writer)
        self.orders = Orders(
            settings,
            self._writer,
            self._queue,
            self._phase,
            self.readiness,
            lambda model: self._followers.start(model),
        )
        self.refits = self.orders.refits
        self.merges = Merges(
            storage, self._writer.models, self._writer.history, self.orders, settings.merge_seconds
        )
        self.leading = self._writer.leading(
            self.orders.in_order, lambda model: self._followers.start(model)
        )
        self.challengers = ChallengerLookup(
            self._writer.models, self.model, self.leading if settings.fleet else None
        )
        self._followers = Followers(
            self.orders.next_turn,
            self._writer.challengers.learn,
            self._is_busy,
            self._delivery.report,
        )
        self._delivery.after(self._followers.wake)
        self._thread = WriterThread(
            self._writer, self._queue, self._phase, loads, warm_up, self._fail
        )
        self.ready = self._thread.ready
        self.ready.add_done_callback(lambda _: self._open())

    def _open(self) -> None:
        self.readiness.settle()
        for model in self._writer.models.all():
            if model.champion is not None and not self.ready.exception():
                self._followers.start(model)

    async def stop(self) -> bool:
        """Accept nothing more, learn what was accepted, save a snapshot of each model.

        False where it was still recovering or compiling: nothing was accepted, and the writer's
        thread goes on until the process ends.
        """
        self.refuse()
        prepared = self.ready.done()
        await self.refits.stop()
        await self._followers.stop()
        self.leading.stop()
        self._queue.close()
        if prepared:
            await self._thread.join()
        return prepared

    def abandon(self) -> None:
        """Stop the compiling process; this process is about to end."""
        self._warm_up.stop()

    def refuse(self) -> None:
        """Refuse new requests as NotReady; finish accepted ones, and stop refits."""
        self.stop_replays()
        self._end("draining: it finishes what it has accepted, then it ends")

    def stop_replays(self) -> None:
        """Replay no other block: recoveries, takeovers and standbys end before the next one."""
        self._replays.stop()

    def _end(self, phase: str) -> None:
        self._phase.end(phase)
        self.refits.ask_to_stop()
        self._warm_up.stop()
        self.readiness.settle()

    @property
    def failed(self) -> bool:
        """Whether the writer has failed, which only a restart repairs."""
        return self._phase.failed

    @property
    def phase(self) -> str:
        """The server's phase: "ready", or the reason why it is not."""
        return self._phase.text

    @property
    def metrics(self) -> Metrics:
        """Counts and durations."""
        return self._writer.metrics

    def watch(self, watcher: Watcher) -> None:
        """Call a function with models whose views may be new, before requests are answered.

        It is also called after a model was created or deleted.
        """
        self._delivery.before(watcher)

    def check_by(self, check: Callable[[], None]) -> None:
        """Have calls refused while `check` raises NotReady: what the models say may be old then.

        So it is in a replica that has not heard of its fleet for long, whichever way a call comes.
        """
        self._check_fresh = check

    def waiting(self) -> Waiting:
        """Return what waits to be learned."""
        return self._queue.waiting()

    def is_model(self, name: str) -> bool:
        """Return whether there is a model of this name, in any phase."""
        return self._writer.models.get(name) is not None

    def recovered_model(self, name: str) -> Model | None:
        """Return the model of a name, in any phase, if it is learned here; on any thread."""
        model = self._writer.models.get(name)
        return model if model is not None and model.led else None

    def term_of(self, model: Model) -> int:
        """Return where the term of a model that is learned here began in its log; 0 if it ended."""
        return self._writer.models.term_began(model)

    def recovered(self) -> list[Model]:
        """Return all models that exist so far, in any phase; on any thread."""
        return [model for model in self._writer.models.all() if model.led]

    @property
    def model_changes(self) -> int:
        """How often a model was added or deleted, in any phase."""
        return self._writer.models.changes

    @property
    def accepting(self) -> bool:
        """Whether requests are taken, which may have to wait until what they need is compiled."""
        return self._phase.accepting

    def model(self, name: str) -> Model:
        """Return the live model of this name. Raises NotReady, UnknownModel, NotLeader."""
        self._phase.check_readable()
        if self._check_fresh is not None:
            self._check_fresh()
        model = self._writer.models.get(name)
        if model is None:
            if self._writer.models.is_released(name):
                raise NotLeader(f"another replica leads model {name!r}")
            raise UnknownModel.named(name)
        return model

    def allowing(self, max_lag_seconds: float) -> RestoredModels:
        """Return what also predicts with restored states of models that are being brought back."""
        return RestoredModels(self, self._restored, max_lag_seconds)

    def _restored(self, name: str) -> tuple[Model, float] | None:
        """Return a model that is being brought back, and for how long it may lack samples."""
        if self._phase.recovering and (model := self._writer.models.get(name)) is not None:
            return model, 0.0  # all of it is back, while others are not
        model = self._writer.models.recovering.get(name) or self.leading.restored(name)
        if model is None or model.snapshot_time is None:
            return None
        return model, time.monotonic() - model.snapshot_time

    async def confirm(self, model: Model) -> None:
        """Make sure that what a model says is not old: no other replica has learned for it since.

        Raises NotLeader, StorageFailed.
        """
        if self._in_fleet:
            await self.leading.confirm(model.name)

    def models(self) -> list[Model]:
        """Return all live models by name. Raises NotReady."""
        self._phase.check_readable()
        return sorted(self._writer.models.all(), key=lambda model: model.name)

    async def compiled(self, model: Model, rows: Rows | None, seconds: float | None = None) -> None:
        """Wait until what a model runs on such rows is compiled; see `Readiness.compiled`."""
        await self.readiness.compiled(model, rows, seconds)

    async def view(
        self, model: Model, head: HeadName, rows: Rows | None, awaited: Moment | None = None
    ) -> Published:
        """Return the published view to predict rows with, once what they run is compiled.

        awaited: what the view must have reached. Raises NotReady, AnotherState, NotReached.
        """
        del head  # all are here
        if not self.readiness.complete:
            await self.readiness.compiled(model, rows)
        if awaited is not None:
            await self.reached(model, awaited)
        if self._check_fresh is not None:  # it may have waited
            self._check_fresh()
        return model.published

    async def moment(self, model: Model) -> Moment:
        """Return the epoch and sequence that a model has now."""
        return Moment(model.published.epoch, model.published.sequence)

    async def reached(self, model: Model, awaited: Moment) -> None:
        """Wait until the published view of a model has a sequence.

        Raises NotReached, and AnotherState where the epoch is another one.
        """
        await self._waiters.reached(model, awaited)

    @property
    def busy_since(self) -> float | None:
        """When the writer took up what it works on, on the monotonic clock; None while it waits."""
        return self._writer.role.busy_since

    def _is_busy(self) -> bool:
        """Return whether requests are being learned, or wait for that."""
        return self.busy_since is not None or self._queue.waiting().samples > 0

    def _fail(self, waiting: list[Waiter]) -> None:
        """Answer all waiting requests after the writer has failed."""
        self._phase.fail("broken: its writer failed; restart it to recover from the journal")
        self.refits.ask_to_stop()
        unknown = InDoubt("the server failed; the samples may or may not have been learned")
        self._delivery.deliver([(waiter, unknown) for waiter in waiting], [])
        refused = ServerFailed("the server failed before these samples had their turn")
        self._queue.close()
        for group in self._queue.groups():
            self._delivery.deliver([(item.answer, refused) for item in group], [])
