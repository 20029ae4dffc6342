"""Requests that wait until a model's view has reached a sequence (`min_sequence`)."""

import asyncio

from wolfstream.service.errors import NotReached
from wolfstream.service.model.live import Model
from wolfstream.service.model.revision import Revision, check_revision
from wolfstream.service.storage.entries import is_same_lineage


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
        _check_epoch(model, awaited)
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
        _check_epoch(model, awaited)

    def wake(self, model: Model) -> None:
        """Wake the requests whose sequence the view of a model has reached."""
        for sequence, waiter in self._waiting.get(model, []):
            if model.published.sequence >= sequence and not waiter.done():
                waiter.set_result(None)

    def _remove(self, model: Model, waiter: "asyncio.Future[None]") -> None:
        others = [item for item in self._waiting.get(model, []) if item[1] is not waiter]
        if others:
            self._waiting[model] = others
        else:
            self._waiting.pop(model, None)


def _check_epoch(model: Model, awaited: Revision) -> None:
    """Raise AnotherState if a model's epoch is of another lineage than the awaited one."""
    sequence, epoch, *_ = model.published
    if awaited.epoch is not None and not is_same_lineage(awaited.epoch, epoch):
        check_revision(model.name, epoch, sequence, [awaited._replace(sequence=None)])
