"""Counts of the samples of one head, which `/metrics` and the console read."""

import threading


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
