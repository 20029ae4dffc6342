"""A worker's counts, which the leader adds to the metrics of the whole server."""

from typing import Any

from wolfstream.service.cluster.channel import counts_since
from wolfstream.service.cluster.follower_engine import FollowerEngine
from wolfstream.service.diagnostics.metrics import Histogram


class WorkerCounts:
    """The counts of one worker since its last report.

    Attributes:
        requests: (method, call, status) -> durations of the worker's requests.
    """

    def __init__(self, engine: FollowerEngine) -> None:
        """Begin with nothing reported.

        Args:
            engine: of this worker.
        """
        self.requests: dict[tuple[str, str, str], Histogram] = {}
        self._engine = engine
        # Name or labels of a histogram -> its [counts, total] as last reported.
        self._reported: dict[Any, list[Any]] = {}
        # (model, head) -> (rows, requests, seconds), as last reported.
        self._predicted: dict[tuple[int, str], tuple[int, int, float]] = {}

    def since_last(self) -> dict[str, Any]:
        """Return what was counted since the previous call, as plain data."""
        return {
            "requests": [
                [*labels, added]
                for labels, histogram in self.requests.items()
                if any((added := self._since(labels, histogram))[0])
            ],
            "predict": self._since("predict", self._engine.metrics.predict),
            "predicted": self._predictions(),
        }

    def _since(self, name: Any, histogram: Histogram) -> list[Any]:
        """Return [counts, total] that a histogram has gained since the last report."""
        added = counts_since(histogram, self._reported.get(name))
        self._reported[name] = [list(histogram.counts), histogram.total]
        return added

    def _predictions(self) -> list[list[Any]]:
        """Return [model, head, rows, requests, seconds] of each head that has predicted since."""
        before, self._predicted = self._predicted, {}
        added = []
        for model in self._engine.models():
            for head, counts in model.counts.items():
                key = model.id, head
                now = counts.predicted, counts.predict_requests, counts.predict_seconds
                self._predicted[key] = now
                rows, requests, seconds = before.get(key, (0, 0, 0.0))
                if now[0] > rows:
                    added.append(
                        [model.id, head, now[0] - rows, now[1] - requests, now[2] - seconds]
                    )
        return added
