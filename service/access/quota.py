"""Quotas of samples per second: a token bucket that may go into debt."""

import math
import time
from collections.abc import Callable

from wolfstream.service.errors import QuotaExceeded


class Quota:
    """At most `per_second` samples a second on average, after a second's worth at once.

    The number of samples in a request is known only once it was read. So a request is admitted
    while there is any credit, and what it takes beyond that is paid back before the next one. A
    batch of any size passes, and the body of a client in debt is not read.

    Where several processes admit requests, each has such a bucket, and learns what the others
    spend: tell is called with what is spent here.
    """

    def __init__(
        self,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[int], None] | None = None,
    ) -> None:
        self._per_second = per_second
        self._most = max(per_second, 1.0)
        self._clock, self._tell = clock, tell
        self._credit = self._most
        self._at = clock()

    def check(self) -> None:
        """Raise QuotaExceeded, with the time until there is credit again."""
        now = self._clock()
        self._credit = min(self._most, self._credit + (now - self._at) * self._per_second)
        self._at = now
        if self._credit <= 0.0:
            seconds = max(1, math.ceil(-self._credit / self._per_second))
            raise QuotaExceeded(
                f"this key has {self._per_second:g} samples a second; try again in {seconds} s",
                retry_after_seconds=seconds,
            )

    def spend(self, samples: int) -> None:
        """Note samples that were admitted here."""
        self._credit -= samples
        if self._tell is not None:
            self._tell(samples)

    def spent_elsewhere(self, samples: int) -> None:
        """Note samples that another process of the server has admitted."""
        self._credit -= samples
