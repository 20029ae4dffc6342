"""What the view of a head knows of the labels just before a row."""

from wolfstream.service.heads.adaptive import BankView
from wolfstream.service.heads.classification import ClassificationView
from wolfstream.service.heads.protocol import HeadView
from wolfstream.service.heads.regression import RegressionView
from wolfstream.solver.stream.label_past import PastView


def past_of(view: HeadView | None) -> PastView | None:
    """Return what the labels so far add to a head's predictions; None if nothing."""
    if not isinstance(view, ClassificationView | RegressionView):
        return None
    bank = view.learner.model if isinstance(view.learner, BankView) else None
    return None if bank is None else bank.past
