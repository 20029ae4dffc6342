"""The order in which a process predicted a model's rows, compared with that of their labels."""

from collections.abc import Iterable
from threading import Lock
from typing import Any

from typing_extensions import override

from wolfstream.service.heads.protocol import HeadView
from wolfstream.service.heads.recent_labels import rows_before
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.rows.recent_rows import RecentView
from wolfstream.solver.stream.label_order import LabelOrder


class PredictedOrder(LabelOrder):
    """A `LabelOrder` that any thread may use."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()

    @override
    def marked(self, recent: RecentView | None, seen: HeadRows) -> HeadRows:
        with self._lock:
            return super().marked(recent, seen)

    @override
    def marked_singly(self, recent: RecentView | None, seen: HeadRows) -> list[bool]:
        with self._lock:
            return super().marked_singly(recent, seen)

    def described(self, heads: Iterable[HeadView]) -> dict[str, Any] | None:
        """Describe how predictions used the labels before a row; None if no head can use them."""
        if all(rows_before(view) is None for view in heads):
            return None
        without, with_them = self.counts
        return {
            "label_delay": self.delay,
            "predicted_with": with_them,
            "predicted_without": without,
        }
