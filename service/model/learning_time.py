"""The time that a model spends learning: in total, and lately for a sample of each kind of work."""

from wolfstream.service.spec.heads import HeadName

# What a block takes beside its samples, about.
_BLOCK_SECONDS = 0.002


class LearningTime:
    """The time that a model has spent learning since the server started, and its samples."""

    def __init__(self) -> None:
        self.samples, self.seconds = 0, 0.0
        # head -> seconds for a sample of the last two blocks posted for it, the last one first
        self._recent: dict[HeadName, tuple[float, ...]] = {}

    def add(self, head: HeadName, samples: int, seconds: float) -> None:
        """Count the samples of a block, and the time that they took."""
        self.samples += samples
        self.seconds += seconds
        each = max(seconds - _BLOCK_SECONDS, 0.0) / max(samples, 1)
        self._recent[head] = each, *self._recent.get(head, ())[:1]

    def of_sample(self, head: HeadName) -> float | None:
        """Return what a sample for a head takes, in seconds; None before the second block.

        It is the smaller one of the last two blocks: a single one may have waited for a compiler or
        a processor.
        """
        recent = self._recent.get(head, ())
        return min(recent) if len(recent) == 2 else None

    @property
    def microseconds(self) -> float | None:
        """The mean time of one sample; None before the first."""
        return 1e6 * self.seconds / self.samples if self.samples else None
