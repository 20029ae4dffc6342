"""Quotas of samples per second: a token bucket that may go into debt."""

import math
import time
from collections.abc import Callable

from wolfstream.service.errors import QuotaExceeded


class Quota:
    """A limit of samples per second on average, with a burst of one second's samples.

    The number of samples is known only after a request has been read. So a request is admitted
    while there is any credit; it may cause a debt, which must be paid off before the next request.
    A batch of any size passes, and the body of a client in debt is not read.

    If several processes admit requests, each has its own bucket, and is told what the others spend.
    """

    def __init__(
        self,
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[int], None] | None = None,
    ) -> None:
        """Begin with full credit.

        Args:
            per_second: the limit.
            clock: returns the time in seconds.
            tell: called with the number of samples of each `spend`.
        """
        self._per_second = per_second
        self._max_credit = max(per_second, 1.0)
        self._clock, self._tell = clock, tell
        self._credit = self._max_credit  # negative is debt
        self._refilled = clock()  # when credit was last added

    def check(self) -> None:
        """Raise QuotaExceeded if there is no credit, with the time until there will be."""
        now = self._clock()
        earned = (now - self._refilled) * self._per_second
        self._credit = min(self._max_credit, self._credit + earned)
        self._refilled = now
        if self._credit <= 0.0:
            seconds = max(1, math.ceil(-self._credit / self._per_second))
            raise QuotaExceeded(
                f"this key has {self._per_second:g} samples a second; try again in {seconds} s",
                retry_after_seconds=seconds,
            )

    def spend(self, samples: int) -> None:
        """Charge samples that this process has admitted."""
        self._credit -= samples
        if self._tell is not None:
            self._tell(samples)

    def spent_elsewhere(self, samples: int) -> None:
        """Charge samples that another process of the server has admitted."""
        self._credit -= samples
