"""Orders: operations on models other than learning, each in its place among the requests.

An order waits in the writer's queue, so that it runs between the requests that came before it and
those that came after. Every method returns once its order has run.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from wolfstream.service.calls.models import Snapshot
from wolfstream.service.engine.challengers import Turn
from wolfstream.service.engine.group_queue import GroupQueue
from wolfstream.service.engine.queue_items import Item, Order
from wolfstream.service.engine.readiness import Phase, Readiness
from wolfstream.service.engine.refits import Job, Refits
from wolfstream.service.engine.writer import Writer
from wolfstream.service.errors import NotReady, SnapshotFailed
from wolfstream.service.heads.fit import Fit, Window
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision
from wolfstream.service.recovery.model_files import LoadedModel
from wolfstream.service.settings import Settings
from wolfstream.service.spec.following import Start
from wolfstream.service.spec.model import ModelSpec
from wolfstream.service.storage.snapshot_format import State

T = TypeVar("T")


class Orders:
    """Sends orders to the writer. Used on the event loop.

    Args:
        settings: of the server.
        writer: that runs the orders.
        queue: that the orders wait in.
        phase: of the server; orders are refused while it is not ready.
        readiness: awaited before an order is queued.
        begin_to_follow: called with a challenger that follows its champion from now on, or goes on
            from another state.

    Attributes:
        refits: the jobs that fit a head again.
    """

    def __init__(
        self,
        settings: Settings,
        writer: Writer,
        queue: GroupQueue[Item],
        phase: Phase,
        readiness: Readiness,
        begin_to_follow: Callable[[Model], None],
    ) -> None:
        self._writer, self._queue = writer, queue
        self._phase, self._readiness = phase, readiness
        self._begin_to_follow = begin_to_follow
        self.refits = Refits(self._take_window, self._serve_fit, settings.refits)

    async def create(self, name: str, spec: ModelSpec) -> tuple[Model, bool]:
        """Return a model of this name and spec, and whether it is new.

        Raises ModelExists, TooManyModels, StorageFailed.
        """
        self._phase.check()
        return await self.in_order(None, lambda: self._writer.new_models.create(name, spec))

    async def follow(
        self, name: str, champion: Model, spec: ModelSpec, start: Start
    ) -> tuple[Model, bool]:
        """Return a challenger that learns what its champion learns, and whether it is new.

        Args:
            name: of the challenger.
            champion: that it follows.
            spec: of the challenger.
            start: what it starts from.

        Raises Invalid, ModelExists, TooManyModels, ModelBroken, UnknownModel, StorageFailed.
        """
        self._phase.check_usable(champion)
        made = await self.in_order(
            champion, lambda: self._writer.challengers.make(name, champion, spec, start)
        )
        self._begin_to_follow(made[0])
        return made

    async def promote(
        self, champion: Model, challenger: Model, expected: Collection[Revision] = ()
    ) -> dict[str, Any]:
        """Exchange the specs and states of a champion and its challenger.

        expected: see `LearnRequest`.

        Returns the champion's new description. Raises AnotherState, LagsBehind, ModelBroken,
        NotFollowing, SnapshotFailed, StorageFailed, UnknownModel, UnusableState.
        """
        self._phase.check_usable(champion)

        def promote() -> dict[str, Any]:
            self._writer.models.check(champion, expected)
            return self._writer.promotion.promote(champion, challenger)

        description = await self.in_order(champion, promote)
        for model in (champion, challenger):
            self.refits.rolled_back(model)
        return description

    async def add(self, name: str, loaded: LoadedModel) -> tuple[Model, bool]:
        """Return an uploaded model, durable by now, and whether it is new.

        Raises StateExists, TooManyModels, StorageFailed.
        """
        return await self.in_order(None, lambda: self._writer.add(name, loaded))

    async def state(self, model: Model) -> State:
        """Return a copy of what a model has learned. Raises ModelBroken, UnknownModel."""
        self._phase.check_usable(model)
        return await self.in_order(model, lambda: self._writer.state(model))

    async def delete(self, model: Model, expected: Collection[Revision] = ()) -> None:
        """Delete a model with its log and snapshots.

        expected: see `LearnRequest`.

        Raises UnknownModel, AnotherState, StorageFailed.
        """

        def delete() -> None:
            self._writer.models.check(model, expected)
            self._writer.delete(model)

        await self.in_order(model, delete)
        self.refits.forget(model)

    def refit(self, model: Model) -> Job:
        """Return the job that refits a model. Raises JobsFull, ModelBroken, NotReady."""
        self._phase.check_usable(model)
        return self.refits.start(model)

    async def history(self, model: Model) -> list[Snapshot]:
        """Return the kept snapshots of a model, newest first. Raises NotReady."""
        self._phase.check_readable()
        try:
            return await asyncio.to_thread(self._writer.history.describe, model)
        except OSError as error:
            raise NotReady(f"the snapshots cannot be read now: {error}; try again") from None

    async def snapshot(self, model: Model) -> int:
        """Save a snapshot; return its sequence.

        Raises ModelBroken, NotLeader, SnapshotFailed, UnknownModel.
        """
        self._phase.check_usable(model)
        sequence, saving = await self.in_order(model, lambda: self._writer.snapshots.start(model))
        try:
            # A client that leaves does not take the snapshot with it.
            await asyncio.shield(asyncio.wrap_future(saving))
        except Exception as error:  # whatever numpy and zipfile raise under low memory, too
            if not self._writer.models.is_live(model):  # it was deleted or handed over meanwhile
                raise model.absence() from None
            # Without the path, which does not concern clients.
            detail = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise SnapshotFailed(f"{detail}; the journal is kept, and nothing is lost") from None
        await self.in_order(None, self._writer.snapshots.finish, samples=0)
        return sequence

    async def roll_back(
        self, model: Model, sequence: int, expected: Collection[Revision] = ()
    ) -> dict[str, Any]:
        """Roll a model back to a snapshot; return its description.

        Args:
            model: to roll back.
            sequence: of the snapshot.
            expected: see `LearnRequest`.

        Raises AnotherState, StorageFailed, UnknownModel, UnknownSnapshot, UnusableSnapshot.
        """

        def roll_back() -> dict[str, Any]:
            self._writer.models.check(model, expected)
            return self._writer.roll_back(model, sequence)

        description = await self.in_order(model, roll_back)
        self.refits.rolled_back(model)
        if model.champion is not None:  # a broken challenger learns again
            self._begin_to_follow(model)
        return description

    async def in_order(self, model: Model | None, run: Callable[[], T], samples: int = 1) -> T:
        """Call a function on the writer's thread, in its place among the requests.

        Args:
            model: between whose requests the call comes; None if it is about no existing model.
            run: the function.
            samples: the room that it takes in the queue; 0 if there is to be room always.

        Returns what the function returns, and raises what it raises. Raises NotReady, QueueFull.
        """
        await self._readiness.wait()
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put(Order(run, waiter, model), samples, 0, model, alone=True)
        return await waiter

    async def next_turn(self, model: Model) -> Turn:
        """Return what a challenger learns next."""
        return await self.in_order(
            model, lambda: self._writer.challengers.next_turn(model), samples=0
        )

    async def _take_window(self, model: Model) -> Window:
        return await self.in_order(model, lambda: self._writer.window(model), samples=0)

    async def _serve_fit(self, model: Model, window: Window, fit: Fit) -> dict[str, Any]:
        return await self.in_order(
            model, lambda: self._writer.serve_fit(model, window, fit), samples=0
        )
