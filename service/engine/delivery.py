"""Delivery of replies from the writer's thread to the event loop, where their waiters are.

Requests that wait until a model's view has reached a sequence (`min_sequence`) are woken by the
same deliveries.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from wolfstream.service.engine.queue_items import Reply
from wolfstream.service.errors import NotReached
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision, check_revision
from wolfstream.service.storage.entries import is_same_lineage

# Called with the models whose views may be new.
Watcher: TypeAlias = Callable[[Sequence[Model]], None]


class SequenceWaiters:
    """Lets requests wait for a sequence of some model. Used on the event loop.

    seconds: how long each request may wait.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # model -> sequences that are waited for, and who waits
        self._waiting: dict[Model, list[tuple[int, asyncio.Future[None]]]] = {}

    async def reached(self, model: Model, awaited: Revision) -> None:
        """Wait until the view of a model has reached a revision.

        Raises NotReached, and AnotherState if the epoch is another one.
        """
        sequence = awaited.sequence or 0
        check_lineage(model, awaited)
        if model.published.sequence >= sequence:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(model, []).append((sequence, waiter))
        try:
            await asyncio.wait_for(waiter, self._seconds)
        except TimeoutError:
            raise NotReached(
                f"model {model.name!r} is at sequence {model.published.sequence}, "
                f"not yet at {sequence}"
            ) from None
        finally:
            self._remove(model, waiter)
        check_lineage(model, awaited)

    def wake(self, model: Model) -> None:
        """Wake the requests whose sequence the model's view has reached."""
        for sequence, waiter in self._waiting.get(model, []):
            if model.published.sequence >= sequence and not waiter.done():
                waiter.set_result(None)

    def _remove(self, model: Model, waiter: "asyncio.Future[None]") -> None:
        others = [item for item in self._waiting.get(model, []) if item[1] is not waiter]
        if others:
            self._waiting[model] = others
        else:
            self._waiting.pop(model, None)


class Delivery:
    """Delivers replies, and tells watchers which models have changed. Used on the event loop.

    Args:
        waiters: requests that wait until a model has reached a sequence.
    """

    def __init__(self, waiters: SequenceWaiters) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiters = waiters
        # Called before the replies are delivered, and after.
        self._before: list[Watcher] = []
        self._after: list[Watcher] = []

    def before(self, watcher: Watcher) -> None:
        """Call a watcher with changed models before the requests that changed them are answered."""
        self._before.append(watcher)

    def after(self, watcher: Watcher) -> None:
        """Call a watcher with changed models after the requests that changed them are answered."""
        self._after.append(watcher)

    def from_writer(self, replies: list[Reply], changed: Iterable[Model]) -> None:
        """Deliver a group's replies with one wake-up of the event loop; on any thread.

        Args:
            replies: waiters, and their results or errors.
            changed: the models whose views are new.
        """
        self._loop.call_soon_threadsafe(self.deliver, replies, list(changed))

    def deliver(self, replies: list[Reply], changed: list[Model]) -> None:
        """Give each waiter its result or its error."""
        for watcher in self._before:
            watcher(changed)
        for waiter, result in replies:
            if waiter.done():  # the client has left
                continue
            if isinstance(result, Exception):
                waiter.set_exception(result)
            else:
                waiter.set_result(result)
        for model in changed:
            self._waiters.wake(model)
        for watcher in self._after:
            watcher(changed)

    def report(self, model: Model) -> None:
        """Tell watchers of a challenger that has learned: no request waits for that."""
        for watcher in self._before:
            watcher([model])
        self._waiters.wake(model)


def check_lineage(model: Model, awaited: Revision) -> None:
    """Raise AnotherState if a model's epoch is of another lineage than the awaited one."""
    sequence, epoch, *_ = model.published
    if awaited.epoch is not None and not is_same_lineage(awaited.epoch, epoch):
        check_revision(model.name, epoch, sequence, [awaited._replace(sequence=None)])
