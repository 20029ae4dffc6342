"""Whether the labels just before a row to predict have come: as rows were predicted and learned.

A process remembers the rows that it predicted last for a model. A row of its own is predicted with
the labels before it if the row that was predicted just before has been learned since, so that its
label is the last one of the model or close to it. Of equal rows that wait the first is learned
first, so that late labels of rows that repeat are not taken for early ones. So a row among others,
the first row, and all rows whose labels come late are predicted without the labels before them.

Nothing of this is written: another process, or this one once it is started again, begins anew.
"""

from collections import deque
from threading import Lock
from typing import NamedTuple

from wolfstream.solver.rows.matrix import n_rows
from wolfstream.solver.rows.seen import Seen
from wolfstream.solver.stream.label_past import PastView
from wolfstream.solver.stream.recent_rows import KEPT, RecentView, last_hashes


class _Question(NamedTuple):
    """The last question: how many rows were learned by then, its row, and what it was told."""

    total: int
    row: int
    in_turn: bool


class LabelOrder:
    """The rows of one model that were predicted and wait for their labels. Any thread may use it.

    delay: how many rows were predicted after the last row that was learned, at most KEPT; None
    before any of them was. counts: of rows predicted without and with the labels before.
    """

    def __init__(self) -> None:
        self.delay: int | None = None
        self.counts = [0, 0]
        self._lock = Lock()
        self._forget(None)

    def _forget(self, total: int | None) -> None:
        # How many rows were learned by the last question; None before the first.
        self._total = total
        self._waiting: deque[int] = deque(maxlen=KEPT)
        # Whether the row predicted last has been learned; False before there is one.
        self._came = False
        self._last: _Question | None = None

    def placed(self, past: PastView | None, seen: Seen) -> Seen:
        """Return rows to predict, which say whether the labels just before them are known.

        past: of the model that predicts them; None if it has no use for those.
        """
        if past is None:
            return seen
        n, rows = n_rows(seen.X), last_hashes(seen.X, seen.raw).tolist()
        with self._lock:
            self._take(past.recent)
            in_turn = self._ask(rows, alone=n == 1)
            self.counts[in_turn] += n
        return seen._replace(in_turn=in_turn)

    def _take(self, recent: RecentView) -> None:
        """Note which of the rows that wait have been learned since the last question."""
        learned = 0 if self._total is None else recent.total - self._total
        if not 0 <= learned <= KEPT:
            # The model went back, or on by more than is known of it.
            self._forget(recent.total)
            return
        for row in recent.last(learned):
            if row in self._waiting:
                place = self._waiting.index(row)
                del self._waiting[place]
                self.delay = len(self._waiting) - place
                self._came = self._came or self.delay == 0
        self._total = recent.total

    def _ask(self, rows: list[int], *, alone: bool) -> bool:
        """Note rows that are predicted now; return whether the labels just before are known."""
        assert self._total is not None
        last, in_turn = self._last, alone and self._came
        if alone and last is not None and (last.total, last.row) == (self._total, rows[0]):
            in_turn = last.in_turn  # the same question has the same answer
        self._waiting.extend(rows)
        self._came = False
        self._last = _Question(self._total, rows[0], in_turn) if alone else None
        return in_turn
