"""The engine: live models, and what the event loop can ask of them.

    submit -> queue -> (writer) append + fsync -> absorb block -> publish view -> acknowledge

Everything here runs on the event loop and waits for nothing but the futures that it returns.
Operations other than learning are in `engine.orders`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.compilation.warm_up import WarmUp
from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.acceptance import Acceptance
from wolfstream.service.engine.challenger_lookup import ChallengerLookup
from wolfstream.service.engine.confirmations import Confirmations
from wolfstream.service.engine.delivery import Delivery, SequenceWaiters, Watcher
from wolfstream.service.engine.followers import Followers
from wolfstream.service.engine.group_queue import GroupQueue, QueueLoad
from wolfstream.service.engine.orders import Orders
from wolfstream.service.engine.queue_items import Item, Waiter
from wolfstream.service.engine.readiness import Phase, Readiness
from wolfstream.service.engine.serving import RestoredModels
from wolfstream.service.engine.writer import Writer
from wolfstream.service.engine.writer_thread import WriterThread
from wolfstream.service.errors import (
    InDoubt,
    NotLeader,
    ServerFailed,
    UnknownModel,
)
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.model.revision import Revision
from wolfstream.service.settings import Settings
from wolfstream.service.spec.heads import HeadName
from wolfstream.service.storage.interfaces import Storage
from wolfstream.solver.prepare.named_rows import Rows


class Engine(Acceptance):
    """Live models and the one writer that changes them; requests come through `Acceptance`.

    Create it on the event loop. It recovers in the background.

    Args:
        settings: of the server.
        storage: open; `stop` closes it.
        warm_up: compiles the numerics, on the writer's thread what the first requests need.
        loads: name -> model file, of the models to load after recovery.

    Attributes:
        ready: done after recovery; raises what recovery raised.
        readiness: what requests wait for.
        orders, refits, leading, challengers: operations other than learning.
        confirmations: of the models that are led here; None outside of a fleet.
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
        # Raises NotReady while what this replica knows of its fleet may be old; see `check_by`.
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
        self.leading = self._writer.leading(
            self.orders.in_order, lambda model: self._followers.start(model)
        )
        self.confirmations = (
            Confirmations(self._writer.models, self.leading.confirm, settings.max_lag_seconds)
            if settings.fleet
            else None
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
        self.readiness.wake()
        for model in self._writer.models.all():
            if model.champion is not None and not self.ready.exception():
                self._followers.start(model)

    async def stop(self) -> bool:
        """Accept nothing more, learn what was accepted, save a snapshot of each model.

        After `stop_learning`, what is left to learn is in the log alone.

        Returns False if the server was still recovering or compiling: then nothing was accepted,
        and the writer's thread goes on until the process ends.
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
        """Stop the compiling process, because this process is about to end."""
        self._warm_up.stop()

    def refuse(self) -> None:
        """Refuse new requests with NotReady, finish accepted ones, and stop refits."""
        self.stop_replays()
        self._end("draining: it finishes what it has accepted, then it ends")

    def stop_learning(self) -> None:
        """Learn no further block or part of a request: the log has them for the next start."""
        self._writer.stop_learning()
        self._queue.wake()

    def stop_replays(self) -> None:
        """Replay no further block: recoveries, takeovers and standbys end before their next one."""
        self._replays.stop()

    def _end(self, phase: str) -> None:
        self._phase.end(phase)
        self.refits.ask_to_stop()
        self._warm_up.stop()
        self.readiness.wake()

    @property
    def failed(self) -> bool:
        """Whether the writer has failed; only a restart repairs that."""
        return self._phase.failed

    @property
    def phase(self) -> str:
        """The server's phase: "ready", or the reason why it is not."""
        return self._phase.text

    @property
    def obstacle(self) -> str:
        """Why the server will probably refuse to learn, although it is ready; "" if it will not."""
        return self._writer.obstacle

    @property
    def metrics(self) -> Metrics:
        """Counts and durations."""
        return self._writer.metrics

    def watch(self, watcher: Watcher) -> None:
        """Call a watcher with models whose views may be new, before requests are answered.

        It is called after a model was created or deleted, too.
        """
        self._delivery.before(watcher)

    def check_by(self, check: Callable[[], None]) -> None:
        """Refuse calls while `check` raises NotReady, because what models say may be old.

        A replica that has not heard of its fleet for long refuses by it, whichever way a call came.
        """
        self._check_fresh = check

    def waiting(self) -> QueueLoad:
        """Return the samples, bytes and age of what waits to be learned."""
        return self._queue.waiting()

    def is_model(self, name: str) -> bool:
        """Return whether a model has this name, in any phase."""
        models = self._writer.models
        return models.get(name) is not None or name in models.recovering

    def recovered_model(self, name: str) -> Model | None:
        """Return the model of this name if it is learned here; in any phase, on any thread."""
        model = self._writer.models.get(name)
        return model if model is not None and model.led else None

    def term_of(self, model: Model) -> int:
        """Return the offset at which a model's term began; 0 if the term is over."""
        return self._writer.models.term_began(model)

    def recovered(self) -> list[Model]:
        """Return all models that are recovered and learned here; in any phase, on any thread."""
        return [model for model in self._writer.models.all() if model.led]

    @property
    def unrecovered(self) -> int:
        """The number of models that are still being recovered, in any phase."""
        return len(self._writer.unrecovered)

    @property
    def model_changes(self) -> int:
        """The number of additions and deletions of models so far, in any phase."""
        return self._writer.models.changes

    @property
    def accepting(self) -> bool:
        """Whether requests are accepted; they may have to wait until their code is compiled."""
        return self._phase.accepting

    def model(self, name: str) -> Model:
        """Return the live model of this name. Raises NotReady, UnknownModel, NotLeader."""
        self._phase.check_readable()
        if self._check_fresh is not None:
            self._check_fresh()
        model = self._writer.models.get(name)
        if model is None:
            self._writer.models.check_recovered(name)
            if self._writer.models.is_released(name):
                raise NotLeader(f"another replica leads model {name!r}")
            raise UnknownModel.named(name)
        return model

    def allowing(self, max_lag_seconds: float) -> RestoredModels:
        """Return an engine that also predicts with restored states of models in recovery."""
        return RestoredModels(self, self._restored, max_lag_seconds)

    def _restored(self, name: str) -> tuple[Model, float] | None:
        """Return a model in recovery, and for how many seconds samples may be missing in it."""
        if self._phase.recovering and (model := self._writer.models.get(name)) is not None:
            return model, 0.0  # this one is complete, while others are not
        replayed = self._writer.models.recovering.get(name)
        model = self.leading.restored(name) if replayed is None else replayed.learner.model
        if model is None or model.snapshot_time is None:
            return None
        return model, boot_seconds() - model.snapshot_time

    async def confirm(self, model: Model) -> None:
        """Make sure that no other replica has learned for a model, so that its view is current.

        Raises NotLeader, StorageFailed.
        """
        if self._in_fleet:
            await self.leading.confirm(model.name)

    def models(self) -> list[Model]:
        """Return all live models by name. Raises NotReady."""
        self._phase.check_readable()
        return sorted(self._writer.models.all(), key=lambda model: model.name)

    async def compiled(self, model: Model, rows: Rows | None, seconds: float | None = None) -> None:
        """Wait until the code that a model runs on such rows is compiled; see `Readiness`."""
        await self.readiness.compiled(model, rows, seconds)

    async def view(
        self, model: Model, head: HeadName, rows: Rows | None, awaited: Revision | None = None
    ) -> ModelView:
        """Return the view to predict rows with, once the code that they run is compiled.

        awaited: the revision that the view must have reached.

        Raises NotReady, AnotherState, NotReached and, in a fleet, NotLeader, UnknownModel.
        """
        del head  # every view has all heads
        if not self.readiness.complete:
            await self.readiness.compiled(model, rows)
        if awaited is not None:
            await self.reached(model, awaited)
        if self._check_fresh is not None:  # time may have passed
            self._check_fresh()
        if self.confirmations is not None:
            await self.confirmations.check(model)
        return model.published

    async def revision(self, model: Model) -> Revision:
        """Return the revision that a model is at now."""
        return Revision(model.published.epoch, model.published.sequence)

    async def reached(self, model: Model, awaited: Revision) -> None:
        """Wait until the view of a model has reached a revision.

        Raises NotReached, and AnotherState if the epoch is another one.
        """
        await self._waiters.reached(model, awaited)

    @property
    def busy_since(self) -> float | None:
        """When the writer took up its present work, by the monotonic clock; None while it waits."""
        return self._writer.role.busy_since

    def _is_busy(self) -> bool:
        """Return whether requests are being learned, or wait to be."""
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
            self._delivery.deliver([(item.waiter, refused) for item in group], [])
