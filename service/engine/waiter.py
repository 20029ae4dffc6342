"""Who waits for the answer to a request: a future of this process, or somebody elsewhere."""

from typing import Any, Protocol


class Waiter(Protocol):
    """What the engine does with an answer; an `asyncio.Future` is one. Called on the event loop."""

    def done(self) -> bool:
        """Return whether nobody waits any more."""

    def set_result(self, result: Any, /) -> None:
        """Give the answer."""

    def set_exception(self, error: Exception, /) -> None:
        """Give the reason why there is none."""
