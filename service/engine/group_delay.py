"""A short delay after which the writer may take queued requests, so that they share one commit.

A commit costs as much for one small request as for several. While the event loop is busy, it is
about to queue more requests; a writer that woke at the first of them would commit it alone, and its
Python code would slow the event loop down.
"""

import asyncio
import time
from collections.abc import Callable

# Clients that were answered together have sent their next requests once this many turns of the
# event loop have brought none. An idle loop needs about ten microseconds for them.
_TURNS = 4
# A bound for a busy loop, which receives 32 single samples in about 4 ms. If only some of them
# shared a commit, the loop would receive the others while the writer works. Each thread would then
# wait for the interpreter's lock, and a commit would take 3 ms instead of 1.
_MOST_SECONDS = 0.006


class GroupDelay:
    """Calls `release` a few turns of the event loop after the last `begin`. Used on the event loop.

    Args:
        release: lets the writer take what was queued; see `GroupQueue.release`.
    """

    def __init__(self, release: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._release = release
        self._turns_left = 0  # 0: no delay is running
        self._since = 0.0  # when the running delay began, by the monotonic clock

    def begin(self) -> None:
        """Begin the delay; if it is running, wait as many turns again."""
        if not self._turns_left:
            self._since = time.monotonic()
            self._loop.call_soon(self._turn)
        self._turns_left = _TURNS

    def _turn(self) -> None:
        self._turns_left -= 1
        if self._turns_left and time.monotonic() - self._since < _MOST_SECONDS:
            self._loop.call_soon(self._turn)
        else:
            self._turns_left = 0
            self._release()
