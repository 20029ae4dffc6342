"""How fast counters grow."""

from collections import deque


class Meter:
    """The growth of some counters over the last few looks at them.

    looks: between how many the growth is measured, at least two.
    """

    def __init__(self, looks: int) -> None:
        self._seen: deque[tuple[float, ...]] = deque(maxlen=looks)

    def look(self, now: float, *counters: float) -> None:
        """Note the counters at a time of the monotonic clock, in seconds."""
        self._seen.append((now, *counters))

    def growth(self) -> tuple[float, ...]:
        """Seconds between the first and the last look, and by how much each counter grew."""
        if not self._seen:
            return ()
        first, last = self._seen[0], self._seen[-1]
        return tuple(after - before for before, after in zip(first, last, strict=True))


def ratio(part: float, whole: float) -> float | None:
    """A rate or a mean; None where nothing was measured."""
    return part / whole if whole > 0 else None
