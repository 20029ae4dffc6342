"""The writer: persists, applies, publishes and acknowledges, on one thread at a time.

It works off the queue in groups. Requests that wait together are learned together, as
`engine.group_learning` describes. Orders, such as the deletion of a model, run between the requests
that came before them and those that came after.

No other thread touches a log or a learner, except as `engine.writer_role` allows threads that have
stepped aside.
"""

import logging
import math
import os
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from wolfstream.service.diagnostics.metrics import Metrics
from wolfstream.service.engine.challengers import Challengers
from wolfstream.service.engine.commits import Commits
from wolfstream.service.engine.group_learning import Acknowledge, GroupLearning
from wolfstream.service.engine.history import History
from wolfstream.service.engine.idempotency import IdempotencyKeys
from wolfstream.service.engine.leading import Leadership, RunInOrder
from wolfstream.service.engine.live_models import PROGRESS_SECONDS, LiveModels
from wolfstream.service.engine.new_models import NewModels
from wolfstream.service.engine.promotion import Promotion
from wolfstream.service.engine.queue_items import GroupRequest, Item, Order, Reply, Waiter
from wolfstream.service.engine.recovery_order import MemoryLeft, Recovery, Room
from wolfstream.service.engine.refits import serve_fit
from wolfstream.service.engine.snapshot_schedule import SnapshotSchedule
from wolfstream.service.engine.turns import SHORT_SECONDS
from wolfstream.service.engine.writer_role import WriterRole
from wolfstream.service.errors import AnotherState, InDoubt, NotReady, Refusal
from wolfstream.service.heads.fit import Fit, Window
from wolfstream.service.model.live import Model
from wolfstream.service.model.memory import ModelMemory
from wolfstream.service.process_settings import Threads, give_back_memory
from wolfstream.service.recovery.model_files import LoadedModel
from wolfstream.service.recovery.uploads import filled
from wolfstream.service.settings import Settings
from wolfstream.service.storage.interfaces import Storage
from wolfstream.service.storage.snapshot_format import State

logger = logging.getLogger(__name__)

# How long an ending replica of a fleet goes on saving models. Each attempt may wait for servers
# that do not answer, and orchestrators kill a process after about two minutes.
_LAST_SECONDS = 30.0
# Once deleted models had this much, the allocator gives free memory back. It keeps almost all of it
# otherwise: models of many small arrays leave hardly a page that is wholly free at its end.
_GIVEN_BACK_BYTES = 16 << 20


class Writer:
    """Learns for all models; all methods run on its thread unless they say otherwise.

    Args:
        storage: open; `close` closes it.
        settings: of the server.
        acknowledge: delivers replies (a waiter and its result or error), and is told the models
            whose views are new.
        short: see `Turns`.

    Attributes:
        role: held by the thread that works off requests.
        metrics: counts and durations.
        models, new_models, history, snapshots, challengers, promotion: the parts that orders use.
    """

    def __init__(
        self,
        storage: Storage,
        settings: Settings,
        acknowledge: Acknowledge,
        short: float = SHORT_SECONDS,
    ) -> None:
        self._storage = storage
        self.catalogue = storage.catalogue
        self._settings = settings
        self._deliver = acknowledge
        self._keys = IdempotencyKeys(settings.idempotency_keys, settings.idempotency_bytes)
        self._threads, self.role = Threads(), WriterRole()
        self._stops_learning = False  # from the next step on
        self._recovering: threading.Thread | None = None  # recovers what took long at the start
        self.metrics = Metrics()
        self.models = LiveModels(storage, self._keys, ModelMemory(settings.shares.models))
        self.new_models = NewModels(storage, self.models, settings.models)
        self.history = History(storage, self.models, self._keys, self._aside)
        self._commits = Commits(storage.journal, self.models, self._keys, self.metrics)
        self.snapshots = SnapshotSchedule(
            storage,
            self.models,
            self._keys,
            self.metrics,
            settings.snapshot_samples,
            settings.snapshot_seconds,
            self._commits,
            self._aside,
            self.role,
            _LAST_SECONDS if settings.fleet else None,
        )
        self.challengers = Challengers(
            self.models,
            self.new_models,
            self._commits,
            self.snapshots,
            settings,
            self._aside,
        )
        self.promotion = Promotion(
            storage.journal,
            self.models,
            self.challengers,
            self.history,
            self.snapshots,
            self._keys,
            self._aside,
        )
        self._learning = GroupLearning(
            self.models,
            self._keys,
            self._commits,
            self.snapshots,
            self.challengers,
            settings,
            self._products,
            self.metrics,
            self.role,
            self._acknowledge,
            short,
        )

    def _acknowledge(self, replies: list[Reply], changed: Iterable[Model]) -> None:
        """Measure the memory of models that have changed, and deliver the replies."""
        changed = list(changed)
        self.models.measure(changed)
        self._deliver(replies, changed)

    def _aside(self, threads: int) -> AbstractContextManager[None]:
        """Return a context to compute in, on this many threads, for models that are in use.

        If the number is the server's, another thread holds the role meanwhile.
        """
        if threads == self._settings.threads:
            return self.role.aside()
        return self._products(threads)

    @contextmanager
    def _products(self, threads: int) -> Iterator[None]:
        """Compute matrix products on this many threads within the block.

        The number belongs to the process. Where it differs from the server's, nothing else may
        compute meanwhile.
        """
        if threads == self._settings.threads:
            yield
            return
        with self.challengers.all_paused():
            self.role.wait_until_alone()
            self._threads.use(threads)
            try:
                yield
            finally:
                self._threads.use(self._settings.threads)

    def recover(self, report: Callable[[str], None]) -> None:
        """Recover all models, or all but those whose replays take long: `go_on_recovering` does.

        Models of a fleet are recovered later, each when it is needed.

        report: called with a line for each step.

        Raises StartupError, NotReady.
        """
        if self._settings.fleet:
            self._threads.use(self._settings.threads)
            return
        processors = len(os.sched_getaffinity(0))
        room = Room(
            max(1, processors // self._settings.threads),
            self._settings.shares.requests,
            MemoryLeft(self._settings).is_scarce,
        )
        # Workers know no models that are being recovered.
        left = self.models.recover(
            self._threads.use, room, report, self.role, beside=self._settings.workers <= 1
        )
        self.challengers.recover()
        self._threads.use(self._settings.threads)
        if left is not None:
            left.go_on_beside(self._settings.threads, self._aside)
            self._recovering = threading.Thread(
                target=self._go_on_recovering, args=[left], name="recovery beside requests"
            )
            self._recovering.start()

    def _go_on_recovering(self, left: Recovery) -> None:
        """Recover the models that are left, while requests to others are answered."""
        try:
            while left.left:
                for learner, term in left.recovered(PROGRESS_SECONDS):
                    with self.role.step():
                        self.models.register_recovered(learner, term)
                        self._acknowledge([], [learner.model])
                self.models.log_progress()
        except NotReady:  # the server stops
            pass
        except Exception:
            logger.exception("recovery failed, start the server again: models=%s", self.unrecovered)

    @property
    def unrecovered(self) -> list[str]:
        """The names of the models that are still being recovered; on any thread."""
        return sorted(self.models.recovering)

    @property
    def obstacle(self) -> str:
        """Why the next commit will probably fail; "" if nothing says so; on any thread."""
        return self._commits.obstacle()

    def stop_learning(self) -> None:
        """Learn no further turn: what is durable is left to the next start. Any thread may call."""
        self._stops_learning = True

    def close(self) -> None:
        """Save a snapshot of each model that has learned since its last one; close the storage."""
        if self._recovering is not None:
            self._recovering.join()
        self.snapshots.close()
        self._storage.close()

    def begin(self, group: "list[Item]", seconds: float = math.inf) -> None:
        """Work off a group in order. Requests between two orders share a commit.

        What takes long is only begun, as is what would be learned after these seconds: call `go_on`
        until no model is `busy`.
        """
        with self._step():
            self._learning.resolve()
            learning: list[GroupRequest] = []
            for item in group:
                if isinstance(item, Order):
                    self._learn(learning, seconds)
                    learning = []
                    while item.model is not None and item.model in self.busy:
                        self.role.wait_until_unused(item.model)
                        self._learning.go_on()
                    self._execute(item)
                else:
                    learning.append(item)
            self._learn(learning, seconds)

    @contextmanager
    def _step(self) -> Iterator[None]:
        """Hold the role within the block; first answer for models that learn no more."""
        with self.role.step():
            self._learning.give_up(self.models.remove_ended(self.role.uses))
            if self._stops_learning:
                self._learning.leave_to_next_start()
            yield
            self._learning.start_snapshots()

    def may_begin_order(self, model: Hashable) -> bool:
        """Return whether an order about this model may begin: no job or turn is in its way."""
        return self.role.may_begin_job(self._concerned(model))

    def _concerned(self, model: Hashable) -> list[Model]:
        """Return the models that an order about this one may read or change."""
        if not isinstance(model, Model):
            return []
        champions = [] if model.champion is None else [model.champion]
        return [model, *champions, *self.challengers.followers(model)]

    @property
    def busy(self) -> set[Model]:
        """The models for which work is under way; no other request of theirs may begin.

        Some may have been handed over: the clients of their last commits still wait for an answer.
        """
        return self._learning.busy

    @property
    def max_request_bytes(self) -> int | None:
        """The bytes of the largest request that may begin; None if any may."""
        return self._learning.max_request_bytes

    @property
    def can_go_on(self) -> bool:
        """Whether `go_on` has something to do."""
        return self._learning.can_go_on

    def waiting(self) -> list[Waiter]:
        """Return the waiters of all requests and orders that have begun."""
        return self._learning.waiting()

    def go_on(self) -> None:
        """Learn what has become durable, and take the next turn."""
        with self._step():
            self._learning.go_on()

    def window(self, model: Model) -> Window:
        """Return a copy of the samples that a refit uses. Raises UnknownModel, ModelBroken."""
        learner = self.models.usable(model)
        with self.role.aside():
            return learner.window()

    def state(self, model: Model) -> State:
        """Return a copy of a model's state. Raises UnknownModel, ModelBroken."""
        learner = self.models.usable(model)
        with self.role.aside():
            return State(*learner.state())

    def leading(
        self,
        in_order: RunInOrder,
        begin_to_follow: Callable[[Model], None],
    ) -> Leadership:
        """Return the object that decides which models of a fleet are learned here."""
        parts = self._storage, self.models, self._keys, self.challengers
        return Leadership(*parts, in_order, begin_to_follow)

    def add(self, name: str, loaded: LoadedModel) -> tuple[Model, bool]:
        """Add a model that was uploaded; see `NewModels.add`."""
        if self._settings.threads > 1:
            with self._aside(1):  # as recovery does
                loaded = filled(name, loaded.state, loaded.model.spec)
        return self.new_models.add(name, loaded)

    def roll_back(self, model: Model, sequence: int) -> dict[str, Any]:
        """Roll a model back to a snapshot; see `History.roll_back`."""
        description = self.history.roll_back(model, sequence)
        self.challengers.rolled_back(model)
        return description

    def delete(self, model: Model) -> None:
        """Delete a model with its log and snapshots; its challengers become independent.

        Raises UnknownModel, StorageFailed, SnapshotFailed.
        """
        followers = self.challengers.followers(model)
        with self.challengers.paused(followers):
            self.challengers.save_followers(model)
            self.models.delete(model)
            self.challengers.free(model)
        self.challengers.forget(model)
        if self.models.memory.forgotten >= _GIVEN_BACK_BYTES:
            self.models.memory.forgotten = 0
            with self.role.aside():
                give_back_memory()

    def serve_fit(self, model: Model, window: Window, fit: Fit) -> dict[str, Any]:
        """Serve a window's fit from now on; see `refits.serve_fit`."""
        learner = self.models.usable(model)
        serve_fit(learner, self._commits, self._aside, self._settings.threads, window, fit)
        self._learning.schedule_snapshot_if_due(model)
        return fit.plain

    def _execute(self, order: Order) -> None:
        try:
            with (
                self.role.job(self._concerned(order.model)),
                self.challengers.paused([order.model]),
            ):
                result = order.run()
        except AnotherState as error:
            assert order.model is not None
            self._learning.refuse(order.model, (order.waiter, error))
        except Refusal as error:
            self._acknowledge([(order.waiter, error)], ())
        except Exception as failure:  # the writer has to go on for the other models
            logger.exception("order failed, its outcome is unknown")
            unknown = InDoubt(f"the server failed: {failure!r}; look at the model before you go on")
            self._acknowledge([(order.waiter, unknown)], ())
        else:
            self._acknowledge(
                [(order.waiter, result)], () if order.model is None else [order.model]
            )

    def _learn(self, requests: list[GroupRequest], seconds: float) -> None:
        if requests:
            self._learning.learn(requests, seconds)
