"""Delivery of replies from the writer's thread to the event loop, where their waiters are."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from wolfstream.service.engine.queue_items import Reply
from wolfstream.service.engine.sequence_waiters import SequenceWaiters
from wolfstream.service.model.live import Model

# Called with the models whose views may be new.
Watcher: TypeAlias = Callable[[Sequence[Model]], None]


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
