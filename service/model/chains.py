"""The chain of a published view: what the default model predicts with, once that code is loaded.

Until then, and where there is no chain, its heads predict one after another, with the same bits.
"""

from typing import NamedTuple

from wolfstream.service.heads.adaptive import NAME, BankView
from wolfstream.service.heads.answers import Predictions
from wolfstream.service.heads.classification import ClassificationView
from wolfstream.service.heads.set_view import SetView
from wolfstream.service.model.published import Published
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.rows.matrix import SparseRows
from wolfstream.solver.rows.seen import Seen
from wolfstream.solver.stream.bank import BankPicture
from wolfstream.solver.stream.chain import Chain, chain_of, is_compiled
from wolfstream.solver.stream.paper_learners import SetPicture

_VOTER: HeadName = "working_set"


class _Chained(NamedTuple):
    """The head of a bank, and the chain by which it predicts."""

    view: ClassificationView
    bank: BankPicture
    chain: Chain


class PublishedChain:
    """Predicts with the view that is published at present. Any thread may use it."""

    def __init__(self) -> None:
        # Both are replaced at once.
        self._last: tuple[Published, _Chained | None] | None = None

    def predict(self, published: Published, head: HeadName, rows: Seen) -> Predictions:
        """As `Published.predict`."""
        if head != NAME or isinstance(rows.X, SparseRows) or not is_compiled():
            return published.predict(head, rows)
        last = self._last
        if last is None or last[0] is not published:
            last = self._last = published, _chained_of(published)
        if last[1] is None:
            return published.predict(head, rows)
        view, bank, chain = last[1]
        return published.with_beside(view.chained(chain, bank, rows), rows)


def _chained_of(published: Published) -> _Chained | None:
    heads = published.heads
    voter, view = heads.get(_VOTER), heads.get(NAME)
    if not isinstance(voter, ClassificationView) or not isinstance(view, ClassificationView):
        return None
    of_set, of_bank = voter.learner, view.learner
    if not isinstance(of_set, SetView) or not isinstance(of_bank, BankView):
        return None
    if not isinstance(of_set.picture, SetPicture) or of_bank.model is None:
        return None
    voters = [name for name in view.head.voters if name in heads and not heads[name].lacks]
    if voters != [_VOTER] or view.lacks:
        return None
    bank = of_bank.model
    one, other = voter.head._replace(learner=of_set.picture), view.head._replace(learner=bank)
    chain = chain_of(_VOTER, one, other)
    return None if chain is None else _Chained(view, bank, chain)
