"""The rows that a head learned last, if it uses the labels just before a row."""

from wolfstream.service.heads.adaptive import BankView
from wolfstream.service.heads.classification import ClassificationView
from wolfstream.service.heads.protocol import HeadView
from wolfstream.service.heads.regression import RegressionView
from wolfstream.solver.rows.recent_rows import RecentView


def rows_before(view: HeadView | None) -> RecentView | None:
    """Return the rows that a head learned last; None if it does not use their labels."""
    if not isinstance(view, ClassificationView | RegressionView):
        return None
    bank = view.learner.model if isinstance(view.learner, BankView) else None
    return None if bank is None or bank.past is None else bank.past.recent
