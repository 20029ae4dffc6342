"""Requests that the event loop queues within a few turns go to the writer together.

The writer commits what waits when it looks, and a commit costs as much for one small request as for
several. While the event loop is busy with others, it is about to queue these as well, and the
writer's Python would only hinder it in the meantime.
"""

import asyncio
import time
from collections.abc import Callable

# Clients that were answered together have sent their next requests after so many turns. An idle
# loop makes them in some ten microseconds.
_TURNS = 4
# A busy loop takes longer: no request waits for the others much longer than for its own commit.
_MOST_SECONDS = 0.002


class Gathering:
    """Releases what was queued, some turns of the event loop later. Used on the event loop."""

    def __init__(self, release: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._release = release
        self._turns, self._since = 0, 0.0

    def begin(self) -> None:
        """Note that something was queued, which others may join until it is released."""
        if not self._turns:
            self._turns, self._since = _TURNS, time.monotonic()
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turns -= 1
        if self._turns and time.monotonic() - self._since < _MOST_SECONDS:
            self._loop.call_soon(self._turn)
        else:
            self._turns = 0
            self._release()
