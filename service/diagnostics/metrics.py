"""Counts and durations of a server's work: plain numbers, which `/metrics` reads.

Only one thread adds to each number, so counting takes no lock; a reader may miss an addition that
is under way. Durations are measured with the monotonic clock.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import TypeAlias

# In seconds: from a prediction of one row to the longest wait of a client.
BOUNDS = (
    *(0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0),
)
# In seconds: up to the month that predicted rows wait for their labels by default.
DELAY_BOUNDS = (
    *(1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0),
    *(86400.0, 2 * 86400.0, 7 * 86400.0, 14 * 86400.0, 30 * 86400.0),
)


class Histogram:
    """A histogram of durations in seconds.

    Attributes:
        bounds: upper bounds, ascending.
        counts: number of durations up to each bound and above the previous bound; the last is the
            number above all bounds.
        total: sum of the durations.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...] = BOUNDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


# (route, method, class of status) -> histogram of the seconds from request to response.
RequestDurations: TypeAlias = dict[tuple[str, str, str], Histogram]


class Metrics:
    """The durations of one server's work. The thread that counts each is in parentheses.

    Attributes:
        learn: requests, from submission to acknowledgement (writer).
        commit: groups of requests, appended and fsynced (writer).
        absorb: blocks, learned and published (writer).
        predict: predictions, including the wait for a sequence (event loop).
        label_delay: from a prediction to the label of its row, on the server's clock (writer).
        snapshots_saved: number of snapshots that were saved (writer).
        snapshots_failed: number of snapshots that could not be saved (writer).
    """

    def __init__(self) -> None:
        self.learn, self.commit = Histogram(), Histogram()
        self.absorb, self.predict = Histogram(), Histogram()
        self.label_delay = Histogram(DELAY_BOUNDS)
        self.snapshots_saved = self.snapshots_failed = 0

    def count_block(self, seconds: float, requests: Iterable[float]) -> None:
        """Count a block that was learned and published, and the requests that were in it.

        Args:
            seconds: the block's duration.
            requests: for each request, the seconds since it was submitted.
        """
        self.absorb.observe(seconds)
        for duration in requests:
            self.learn.observe(duration)
