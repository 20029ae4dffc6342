"""The part of a head's view that depends on the labels just before a row."""

from wolfstream.service.heads.adaptive import BankView
from wolfstream.service.heads.classification import ClassificationView
from wolfstream.service.heads.protocol import HeadView
from wolfstream.service.heads.regression import RegressionView
from wolfstream.solver.adaptive.label_past import PastView


def past_of(view: HeadView | None) -> PastView | None:
    """Return the view that adds earlier labels to a head's predictions; None if it uses none."""
    if not isinstance(view, ClassificationView | RegressionView):
        return None
    bank = view.learner.model if isinstance(view.learner, BankView) else None
    return None if bank is None else bank.past
