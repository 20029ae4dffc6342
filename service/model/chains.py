"""Predicts with one compiled chain of heads, if a model has the heads of the default one.

The heads of other models, and of all models until that code is loaded, predict one after another.
The bits are the same.
"""

from typing import NamedTuple

from wolfstream.service.heads.adaptive import NAME, BankView
from wolfstream.service.heads.classification import ClassificationView
from wolfstream.service.heads.protocol import Predictions
from wolfstream.service.heads.regression import RegressionView
from wolfstream.service.heads.set_view import SetView
from wolfstream.service.model.published import ModelView
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.adaptive.bank import BankLearnerView
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.rows.matrix import SparseRows
from wolfstream.solver.stream.chain import Chain, chain_of, is_compiled
from wolfstream.solver.stream.paper_learners import SetLearnerView

_VOTER: HeadName = "working_set"


class _BankChain(NamedTuple):
    """A view's head of a bank, and the chain by which the head predicts."""

    view: ClassificationView
    bank: BankLearnerView
    chain: Chain


class PublishedChain:
    """Predicts with the view that is published at present. Any thread may use it."""

    def __init__(self) -> None:
        # The view that was used last, and its chain or None: in one attribute, so that threads
        # replace both at once.
        self._last: tuple[ModelView, _BankChain | None] | None = None

    def predict(self, published: ModelView, head: HeadName, rows: HeadRows) -> Predictions:
        """Return what `ModelView.predict` returns."""
        chained = None if isinstance(rows.X, SparseRows) else self._chain(published, head)
        if chained is None:
            return published.predict(head, rows)
        view, bank, chain = chained
        return published.with_beside(view.chained(chain, bank, rows), rows)

    def is_rowwise(self, published: ModelView, head: HeadName) -> bool:
        """Return whether the predictions of dense rows have the same bits alone and among others.

        Those of a chain have, and in regression those of a bank without votes of other heads.
        """
        heads = published.heads
        view = heads[head]
        if isinstance(view, RegressionView):
            votes = any(name in view.head.voters and not heads[name].lacks for name in heads)
            return head == NAME and not votes
        return self._chain(published, head) is not None

    def _chain(self, published: ModelView, head: HeadName) -> _BankChain | None:
        if head != NAME or not is_compiled():
            return None
        last = self._last
        if last is None or last[0] is not published:
            last = self._last = published, _bank_chain(published)
        return last[1]


def _bank_chain(published: ModelView) -> _BankChain | None:
    """Return the chain of a view; None unless its heads are those of the default model."""
    heads = published.heads
    voter, view = heads.get(_VOTER), heads.get(NAME)
    if not isinstance(voter, ClassificationView) or not isinstance(view, ClassificationView):
        return None
    set_view, bank_view = voter.learner, view.learner
    if not isinstance(set_view, SetView) or not isinstance(bank_view, BankView):
        return None
    if not isinstance(set_view.learner, SetLearnerView) or bank_view.model is None:
        return None
    voters = [name for name in view.head.voters if name in heads and not heads[name].lacks]
    if voters != [_VOTER] or view.lacks:
        return None
    bank = bank_view.model
    voter_head = voter.head._replace(learner=set_view.learner)
    chain = chain_of(_VOTER, voter_head, view.head._replace(learner=bank))
    return None if chain is None else _BankChain(view, bank, chain)
