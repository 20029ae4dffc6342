"""How fast counters grow."""

from collections import deque


class Meter:
    """The growth of some counters over the last few readings.

    readings: how many are kept, at least two; growth is from the oldest to the newest.
    """

    def __init__(self, readings: int) -> None:
        self._seen: deque[tuple[float, ...]] = deque(maxlen=readings)

    def read(self, now: float, *counters: float) -> None:
        """Take a reading of the counters. now: seconds of the monotonic clock."""
        self._seen.append((now, *counters))

    def growth(self) -> tuple[float, ...]:
        """Seconds from the oldest reading to the newest, and the growth of each counter."""
        if not self._seen:
            return ()
        first, last = self._seen[0], self._seen[-1]
        return tuple(after - before for before, after in zip(first, last, strict=True))


def ratio(part: float, whole: float) -> float | None:
    """Return a rate or a mean; None if there is nothing to divide by."""
    return part / whole if whole > 0 else None
