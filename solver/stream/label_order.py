"""Tells whether the labels just before a row to predict are known, from the order of calls.

A process remembers the rows that it predicted last for a model. A single row is predicted with the
labels before it if the row that was predicted just before it has been learned since: then the last
label of the model belongs to that row, or nearly so. Rows among others, the first row, and rows
whose labels come late are predicted without the labels before them.

Of equal rows that wait for labels, the first is taken to be learned first, so that late labels of
repeated rows are not taken for early ones. A row that is predicted repeatedly counts once if the
next one is another row.

Nothing of this is saved: another process, or this one after a restart, begins without memory.
"""

from collections import deque
from typing import NamedTuple

from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.rows.matrix import n_rows
from wolfstream.solver.rows.recent_rows import KEPT, RecentView, last_hashes


class _Question(NamedTuple):
    """The last prediction of a single row."""

    total: int  # how many rows the model had learned by then
    row: int  # hash
    in_turn: bool  # whether the labels before it counted as known
    times: int = 1  # how often it was predicted
    came: bool = False  # whether the row, or one of as many equal rows, has been learned since


class LabelOrder:
    """The rows of one model that were predicted and wait for their labels. Used by one thread.

    delay: how many rows were predicted between the last learned row and its label, at most KEPT;
        None before a predicted row was learned.
    counts: how many rows were predicted without, and with the labels before them.
    """

    def __init__(self) -> None:
        self.delay: int | None = None
        self.counts = [0, 0]
        self._forget(None)

    def _forget(self, total: int | None) -> None:
        # How many rows were learned by the last prediction; None before the first.
        self._total = total
        # Hashes of predicted rows that were not learned yet, in order.
        self._waiting: deque[int] = deque(maxlen=KEPT)
        self._last: _Question | None = None

    def marked(self, recent: RecentView | None, seen: HeadRows) -> HeadRows:
        """Return rows to predict, marked if the labels just before them are known.

        recent: the rows learned last; None if the model does not use the labels before a row.
        seen: rows that are predicted in one call.
        """
        if recent is None:
            return seen
        n, rows = n_rows(seen.X), last_hashes(seen.X, seen.raw).tolist()
        self._take(recent)
        in_turn = self._ask(rows, alone=n == 1)
        self.counts[in_turn] += n
        return seen._replace(in_turn=in_turn)

    def marked_singly(self, recent: RecentView | None, seen: HeadRows) -> list[bool]:
        """Return for each row whether `marked` would mark it, if rows are predicted one by one.

        recent: see `marked`.
        seen: at most KEPT rows.
        """
        if recent is None:
            return [False] * n_rows(seen.X)
        assert n_rows(seen.X) <= KEPT
        self._take(recent)
        in_turn = [self._ask([row], alone=True) for row in last_hashes(seen.X, seen.raw).tolist()]
        self.counts[True] += sum(in_turn)
        self.counts[False] += len(in_turn) - sum(in_turn)
        return in_turn

    def _take(self, recent: RecentView) -> None:
        """Remove waiting rows that have been learned since the last prediction."""
        learned = 0 if self._total is None else recent.total - self._total
        if not 0 <= learned <= KEPT:
            # The model was rolled back, or has learned more rows than it remembers.
            self._forget(recent.total)
            return
        for row in recent.last(learned):
            if row in self._waiting:
                index = self._waiting.index(row)
                del self._waiting[index]
                self.delay = after = len(self._waiting) - index
                if self._last is not None and after < self._last.times:
                    self._last = self._last._replace(came=True)
                    self.delay = 0
        self._total = recent.total

    def _ask(self, rows: list[int], *, alone: bool) -> bool:
        """Add rows that are predicted now; return whether the labels just before are known."""
        assert self._total is not None
        last, row, times = self._last, rows[0], 1
        in_turn = alone and last is not None and last.came
        if last is not None and row == last.row:
            if alone and last.total == self._total:
                # The same row gets the same prediction.
                in_turn, times = last.in_turn, last.times + 1
            elif last.times > 1:
                # There may have been several equal rows, of which one was learned.
                in_turn = False
        elif in_turn and last is not None:
            # The repeated predictions were of one row.
            while last.times > 1 and self._waiting and self._waiting[-1] == last.row:
                self._waiting.pop()
        self._waiting.extend(rows)
        question = _Question(self._total, row, in_turn, times)
        self._last = question if alone else None
        return in_turn
