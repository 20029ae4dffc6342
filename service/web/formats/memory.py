"""Bounds the total memory of the requests and responses of all connections.

A limit on each body does not bound eight hundred concurrent ones. Nor does it bound the response to
rows of one byte each, or the views that long predictions still read after learning has replaced
them. Samples that wait to be learned have their own bound, in the queue.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from wolfstream.service.errors import MemoryFull, OutOfMemory
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.settings import usable_bytes

# Smaller bodies are not counted: each connection has at most one of them.
UNCOUNTED_BYTES = 1 << 16
# Python objects take about this many times the memory of the text from which they are parsed.
DECODED_FACTOR = 8
# The memory of one value of a response: in the arrays of a prediction, as an object, in a list, and
# in the bytes that are sent.
VALUE_BYTES = 64


class Reserve:
    """Memory that is set aside for the responses after the system refuses to allocate more.

    Used on the event loop.
    """

    def __init__(self) -> None:
        self._memory: bytearray | None = bytearray(RESERVE_BYTES)

    def release(self) -> OutOfMemory:
        """Free the memory, and return the error to respond with."""
        self._memory = None
        return OutOfMemory(
            "the process got no more memory; check the model before you continue. DELETE models "
            "that are not used, or give the server more memory"
        )

    def is_available(self) -> bool:
        """Set the memory aside again if it was freed; return whether this was possible."""
        if self._memory is None:
            try:
                self._memory = bytearray(RESERVE_BYTES)
            except MemoryError:
                return False
        return True


RESERVE_BYTES = 4 << 20
# A process needs only one.
RESERVE = Reserve()


class MemoryBudget:
    """The bytes that all requests hold. Used on the event loop.

    Args:
        max_bytes: the bound; 0 means a quarter of the memory that the process may use. A request
            that exceeds the bound by itself is accepted while no other request holds memory.
        elsewhere: returns the bytes that requests to other processes of the server hold.
    """

    def __init__(self, max_bytes: int, elsewhere: Callable[[], int] = lambda: 0) -> None:
        self._max_bytes = max_bytes or usable_bytes() // 4
        self.elsewhere = elsewhere
        self._views: dict[int, _ViewInUse] = {}  # by the views' addresses
        self.held = 0

    def lease(self) -> "Lease":
        """Return the lease of a new request, which holds nothing yet."""
        return Lease(self)

    def take(self, n_bytes: int, already: int) -> None:
        """Let a request that already holds some bytes hold more. Raises MemoryFull."""
        held = self.held + self._replaced_bytes() + self.elsewhere()
        if held > already and held + n_bytes > self._max_bytes:
            raise MemoryFull(
                f"requests take {held} bytes of memory, at most {self._max_bytes} may; try "
                "again, or send smaller batches"
            )
        self.held += n_bytes

    @contextmanager
    def reading(self, model: Model, published: ModelView) -> Iterator[None]:
        """Count the memory of a view within the block, from when another view replaces it.

        Raises MemoryFull if replaced views take more memory than all requests may.
        """
        replaced = self._replaced_bytes()
        if replaced > self._max_bytes:
            raise MemoryFull(
                f"predictions that run read {replaced} bytes of views that learning has replaced, "
                f"at most {self._max_bytes} may be; try again"
            )
        view = self._views.setdefault(id(published), _ViewInUse(model, published))
        view.readers += 1
        try:
            yield
        finally:
            view.readers -= 1
            if not view.readers:
                del self._views[id(published)]

    def _replaced_bytes(self) -> int:
        return sum(view.n_bytes for view in self._views.values() if view.is_replaced)


class _ViewInUse:
    """A view that predictions are reading."""

    def __init__(self, model: Model, published: ModelView) -> None:
        self._model, self._published = model, published
        self.n_bytes = published.n_bytes
        self.readers = 0

    @property
    def is_replaced(self) -> bool:
        return self._model.published is not self._published


class Lease:
    """A request's part of the budget; as a context manager, it is released at the end."""

    __slots__ = ("_budget", "_held")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget, self._held = budget, 0

    @property
    def holds(self) -> bool:
        """Whether it holds anything; the lease of a small request never does."""
        return self._held > 0

    def hold(self, n_bytes: int) -> None:
        """Hold at least this many bytes in total. Raises MemoryFull."""
        if n_bytes > self._held:
            self._budget.take(n_bytes - self._held, self._held)
            self._held = n_bytes

    def hold_unbounded(self, n_bytes: int) -> None:
        """Hold this many bytes in total, despite the bound, for a response that must be sent."""
        self._budget.held += n_bytes - self._held
        self._held = n_bytes

    def shrink(self, n_bytes: int) -> None:
        """Hold at most this many bytes."""
        if n_bytes < self._held:
            self.hold_unbounded(n_bytes)

    @contextmanager
    def reading(self, model: Model, published: ModelView) -> Iterator[None]:
        """Count a view while it is read, as `MemoryBudget.reading` does. Raises MemoryFull."""
        with self._budget.reading(model, published):
            yield

    def hand_over(self) -> "Lease":
        """Return a new lease that holds what this one held; this one holds nothing afterwards."""
        other = Lease(self._budget)
        other._held, self._held = self._held, 0
        return other

    def release(self) -> None:
        """Release all memory of the lease."""
        self._budget.held -= self._held
        self._held = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._held:
            self.release()
