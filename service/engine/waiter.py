"""The interface of what waits for an answer: a future here, or a request in a worker."""

from typing import Any, Protocol


class Waiter(Protocol):
    """What the engine does with an answer; an `asyncio.Future` is one. Called on the event loop."""

    def done(self) -> bool:
        """Return whether the answer is no longer awaited."""

    def set_result(self, result: Any, /) -> None:
        """Deliver the answer."""

    def set_exception(self, error: Exception, /) -> None:
        """Deliver the error."""
