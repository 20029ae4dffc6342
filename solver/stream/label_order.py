"""Whether the labels just before a row to predict have come: as rows were predicted and learned.

A process remembers the rows that it predicted last for a model. A row of its own is predicted with
the labels before it if the row that was predicted just before has been learned since, so that its
label is the last one of the model or close to it. Of equal rows that wait the first is learned
first, so that late labels of rows that repeat are not taken for early ones; a question that is
asked again is about one row if the next one is about another. So a row among others, the first row,
and all rows whose labels come late are predicted without the labels before them.

Nothing of this is written: another process, or this one once it is started again, begins anew.
"""

from collections import deque
from typing import NamedTuple

from wolfstream.solver.rows.matrix import n_rows
from wolfstream.solver.rows.seen import Seen
from wolfstream.solver.stream.label_past import PastView
from wolfstream.solver.stream.recent_rows import KEPT, RecentView, last_hashes


class _Question(NamedTuple):
    """The last question about one row: how many rows were learned by then, and what it was told.

    times: how often it was asked. came: whether its row, or one of that many, has been learned.
    """

    total: int
    row: int
    in_turn: bool
    times: int = 1
    came: bool = False


class LabelOrder:
    """The rows of one model that were predicted and wait for their labels. Used by one thread.

    delay: how many rows were predicted after the last row that was learned, at most KEPT; None
    before any of them was. counts: of rows predicted without and with the labels before.
    """

    def __init__(self) -> None:
        self.delay: int | None = None
        self.counts = [0, 0]
        self._forget(None)

    def _forget(self, total: int | None) -> None:
        # How many rows were learned by the last question; None before the first.
        self._total = total
        self._waiting: deque[int] = deque(maxlen=KEPT)
        self._last: _Question | None = None

    def placed(self, past: PastView | None, seen: Seen) -> Seen:
        """Return rows to predict, which say whether the labels just before them are known.

        past: of the model that predicts them; None if it has no use for those.
        """
        if past is None:
            return seen
        n, rows = n_rows(seen.X), last_hashes(seen.X, seen.raw).tolist()
        self._take(past.recent)
        in_turn = self._ask(rows, alone=n == 1)
        self.counts[in_turn] += n
        return seen._replace(in_turn=in_turn)

    def placed_singly(self, past: PastView | None, seen: Seen) -> list[bool]:
        """Return, for rows that are asked for one after another, what `placed` says of each.

        past: as of `placed`. seen: at most KEPT rows.
        """
        if past is None:
            return [False] * n_rows(seen.X)
        assert n_rows(seen.X) <= KEPT
        self._take(past.recent)
        in_turn = [self._ask([row], alone=True) for row in last_hashes(seen.X, seen.raw).tolist()]
        self.counts[True] += sum(in_turn)
        self.counts[False] += len(in_turn) - sum(in_turn)
        return in_turn

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
                self.delay = after = len(self._waiting) - place
                if self._last is not None and after < self._last.times:
                    self._last = self._last._replace(came=True)
                    self.delay = 0
        self._total = recent.total

    def _ask(self, rows: list[int], *, alone: bool) -> bool:
        """Note rows that are predicted now; return whether the labels just before are known."""
        assert self._total is not None
        last, row, times = self._last, rows[0], 1
        in_turn = alone and last is not None and last.came
        if last is not None and row == last.row:
            if alone and last.total == self._total:
                # The same question has the same answer.
                in_turn, times = last.in_turn, last.times + 1
            elif last.times > 1:
                # It may have been asked about as many rows, of which one was learned.
                in_turn = False
        elif in_turn and last is not None:
            # What was asked several times was one row.
            while last.times > 1 and self._waiting and self._waiting[-1] == last.row:
                self._waiting.pop()
        self._waiting.extend(rows)
        question = _Question(self._total, row, in_turn, times)
        self._last = question if alone else None
        return in_turn
