"""The memory that requests and their answers may take, all connections together.

Each body is bounded, but eight hundred of them at a time are not; nor are the answers to rows that
take a byte each, nor the views that predictions read, which learning replaces meanwhile. What waits
to be learned has its own bound, in the queue.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from wolfstream.service.errors import MemoryFull, OutOfMemory
from wolfstream.service.model.live import Model
from wolfstream.service.model.published import ModelView
from wolfstream.service.settings import usable_bytes

# Smaller parts of a body are not counted: there are not more of them than connections.
UNCOUNTED_BYTES = 1 << 16
# The approximate memory of Python's objects, as a multiple of the text that they were parsed from.
DECODED_FACTOR = 8
# A value of an answer: in the arrays of a view's prediction, as an object, in a list, and written.
VALUE_BYTES = 64


class Reserve:
    """Memory that responses are made with once the process gets no more. Used on the event loop."""

    def __init__(self) -> None:
        self._kept: bytearray | None = bytearray(RESERVE_BYTES)

    def give_up(self) -> OutOfMemory:
        """Let go of it, and return the error to respond with."""
        self._kept = None
        return OutOfMemory(
            "the process got no more memory; look at the model before you go on. DELETE models "
            "that are not used, or give the server more memory"
        )

    def is_whole(self) -> bool:
        """Return whether it is there, or could be taken again."""
        if self._kept is None:
            try:
                self._kept = bytearray(RESERVE_BYTES)
            except MemoryError:
                return False
        return True


RESERVE_BYTES = 4 << 20
# Of the process, whose memory it is.
RESERVE = Reserve()


class MemoryBudget:
    """What all requests hold, in bytes. Used on the event loop.

    elsewhere: what requests to other processes of the server hold.
    most_bytes: the bound; 0 means a quarter of the memory that the process may use. A request
        that exceeds it by itself is taken while no other holds anything.
    """

    def __init__(self, most_bytes: int, elsewhere: Callable[[], int] = lambda: 0) -> None:
        self._most_bytes = most_bytes or usable_bytes() // 4
        self.elsewhere = elsewhere
        self._read: dict[int, _Read] = {}
        self.held = 0

    def lease(self) -> "Lease":
        """Return a lease of a new request, which holds nothing yet."""
        return Lease(self)

    def take(self, n_bytes: int, already: int) -> None:
        """Let a request that holds some bytes already hold more. Raises MemoryFull."""
        held = self.held + self._replaced_bytes() + self.elsewhere()
        if held > already and held + n_bytes > self._most_bytes:
            raise MemoryFull(
                f"requests take {held} bytes of memory, at most {self._most_bytes} may; try "
                "again, or send smaller batches"
            )
        self.held += n_bytes

    @contextmanager
    def reading(self, model: Model, published: ModelView) -> Iterator[None]:
        """Read a view of a model for a while, in which another may replace it.

        From then on it takes its own memory, until it is no longer read. Raises MemoryFull if such
        views take more than all requests may.
        """
        replaced = self._replaced_bytes()
        if replaced > self._most_bytes:
            raise MemoryFull(
                f"predictions that run read {replaced} bytes of views that learning has replaced, "
                f"at most {self._most_bytes} may be; try again"
            )
        read = self._read.setdefault(id(published), _Read(model, published))
        read.readers += 1
        try:
            yield
        finally:
            read.readers -= 1
            if not read.readers:
                del self._read[id(published)]

    def _replaced_bytes(self) -> int:
        return sum(read.n_bytes for read in self._read.values() if read.is_replaced)


class _Read:
    """A view that predictions read."""

    def __init__(self, model: Model, published: ModelView) -> None:
        self._model, self._published = model, published
        self.n_bytes = published.n_bytes
        self.readers = 0

    @property
    def is_replaced(self) -> bool:
        return self._model.published is not self._published


class Lease:
    """A request's part of a budget; as a context manager it returns everything at the end."""

    __slots__ = ("_budget", "_held")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget, self._held = budget, 0

    @property
    def holds(self) -> bool:
        """Return whether it holds anything, which those of small requests never do."""
        return self._held > 0

    def hold(self, n_bytes: int) -> None:
        """Hold at least this many bytes in total. Raises MemoryFull."""
        if n_bytes > self._held:
            self._budget.take(n_bytes - self._held, self._held)
            self._held = n_bytes

    def count(self, n_bytes: int) -> None:
        """Hold this many bytes in total, without a bound, for an answer that must be sent."""
        self._budget.held += n_bytes - self._held
        self._held = n_bytes

    def keep(self, n_bytes: int) -> None:
        """Return everything above this many bytes."""
        if n_bytes < self._held:
            self.count(n_bytes)

    @contextmanager
    def reading(self, model: Model, published: ModelView) -> Iterator[None]:
        """See `MemoryBudget.reading`. Raises MemoryFull."""
        with self._budget.reading(model, published):
            yield

    def hand_over(self) -> "Lease":
        """Another lease, which holds what this one held until now."""
        other = Lease(self._budget)
        other._held, self._held = self._held, 0
        return other

    def release(self) -> None:
        """Give all back."""
        self._budget.held -= self._held
        self._held = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        if self._held:
            self.release()
