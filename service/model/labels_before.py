"""What a published view knows of the labels just before a row, and how predictions used it."""

from typing import Any

from wolfstream.service.heads.adaptive import NAME, BankView
from wolfstream.service.heads.classification import ClassificationView
from wolfstream.service.heads.regression import RegressionView
from wolfstream.service.model.published import ModelView
from wolfstream.service.spec.heads import HeadName
from wolfstream.solver.stream.label_order import LabelOrder
from wolfstream.solver.stream.label_past import PastView


def past_of(published: ModelView, head: HeadName) -> PastView | None:
    """Return what the labels so far add to a head's predictions; None if nothing."""
    view = published.heads.get(head)
    if not isinstance(view, ClassificationView | RegressionView):
        return None
    bank = view.learner.model if isinstance(view.learner, BankView) else None
    return None if bank is None else bank.past


def described_order(published: ModelView, order: LabelOrder) -> dict[str, Any] | None:
    """Describe how predictions of this process used the labels before; None if none can."""
    if past_of(published, NAME) is None:
        return None
    alone, in_turn = order.counts
    return {
        "label_delay": order.delay,
        "predicted_with": in_turn,
        "predicted_without": alone,
    }
