"""Rates: how fast counters grow."""

from collections import deque


class Meter:
    """The growth of counters over the last few readings."""

    def __init__(self, readings: int) -> None:
        """Begin without readings.

        Args:
            readings: how many are stored, at least two.
        """
        self._readings: deque[tuple[float, ...]] = deque(maxlen=readings)  # (time, *counters)

    def read(self, now: float, *counters: float) -> None:
        """Take a reading.

        Args:
            now: seconds of the monotonic clock.
            counters: always the same ones, in the same order.
        """
        self._readings.append((now, *counters))

    def growth(self) -> tuple[float, ...]:
        """Return (seconds, growth of each counter) from the oldest reading to the newest."""
        if not self._readings:
            return ()
        first, last = self._readings[0], self._readings[-1]
        return tuple(after - before for before, after in zip(first, last, strict=True))


def ratio(part: float, whole: float) -> float | None:
    """Return a rate or a mean; None if the divisor is not positive."""
    return part / whole if whole > 0 else None
