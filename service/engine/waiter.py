"""Who waits for a reply of the engine: a future of this process, or a request in a worker."""

from typing import Any, Protocol


class Waiter(Protocol):
    """Takes one reply. Called on the event loop. An `asyncio.Future` is a `Waiter`."""

    def done(self) -> bool:
        """Return whether no reply is awaited any more."""

    def set_result(self, result: Any, /) -> None:
        """Deliver the result."""

    def set_exception(self, error: Exception, /) -> None:
        """Deliver the error."""
