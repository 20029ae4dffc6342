"""What a server counts of a model: the samples of each head, and the time that learning them takes.

`/metrics` and the console read the counts; the time decides whose turn is next.
"""

import threading

from wolfstream.service.spec.heads import HeadName

# The approximate time of a block besides that of its samples.
_BLOCK_SECONDS = 0.002


class SampleCounts:
    """Samples for one head of one model since the server started.

    While none of them waits, received = learned + rejected + refused + duplicates. The thread that
    counts each is in parentheses.

    Attributes:
        received: in requests that could be read, counted when they are submitted (event loop).
        refused: not admitted to the queue (event loop).
        learned: on disk and in the model (writer).
        rejected: waited in the queue, but could not be learned (writer).
        duplicates: received again after they were learned (any thread; see `count_duplicates`).
        predicted: predicted rows (event loop).
        learn_requests: requests whose samples were learned (writer).
        learn_seconds: their durations, from submission to acknowledgement (writer).
        predict_requests: predictions (event loop).
        predict_seconds: their durations, including the wait for a sequence (event loop).
    """

    __slots__ = (
        *("_lock", "duplicates", "learned", "predicted", "received", "refused", "rejected"),
        *("learn_requests", "learn_seconds", "predict_requests", "predict_seconds"),
    )

    def __init__(self) -> None:
        self.received = self.refused = self.learned = self.rejected = self.predicted = 0
        self.duplicates = self.learn_requests = self.predict_requests = 0
        self.learn_seconds = self.predict_seconds = 0.0
        self._lock = threading.Lock()

    def count_duplicates(self, samples: int) -> None:
        """Count samples that had been learned before they were received; on any thread."""
        with self._lock:
            self.duplicates += samples


class LearningTime:
    """The samples that a model has learned since the server started, and the time they took."""

    def __init__(self) -> None:
        self.samples, self.seconds = 0, 0.0
        # head -> seconds per sample of the last two blocks posted for it, the last one first
        self._recent: dict[HeadName, tuple[float, ...]] = {}

    def add(self, head: HeadName, samples: int, seconds: float) -> None:
        """Count the samples of a block, and the time that they took."""
        self.samples += samples
        self.seconds += seconds
        each = max(seconds - _BLOCK_SECONDS, 0.0) / max(samples, 1)
        self._recent[head] = each, *self._recent.get(head, ())[:1]

    def seconds_per_sample(self, head: HeadName) -> float | None:
        """Return the time to learn a sample for a head; None before the second block.

        It is the shorter one of the last two blocks, because a single block may have waited for a
        compiler or a processor.
        """
        recent = self._recent.get(head, ())
        return min(recent) if len(recent) == 2 else None

    def without_compiling(self, head: HeadName, samples: int, seconds: float) -> float:
        """Return the seconds of the last block, but for those that it waited for a compiler.

        A replay finds the code compiled. A first block may have compiled all of it, so it counts as
        if its samples had taken no time.

        Args:
            head: that the block was posted for.
            samples: of the block, which was added.
            seconds: that it took.
        """
        each = self.seconds_per_sample(head) or 0.0
        return min(seconds, _BLOCK_SECONDS + samples * each)

    @property
    def microseconds(self) -> float | None:
        """The mean time of a sample; None before the first."""
        return 1e6 * self.seconds / self.samples if self.samples else None
