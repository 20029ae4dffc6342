"""The reasons for a published model's predictions, as plain data for an answer."""

from typing import Any

from wolfstream.service.heads.protocol import HeadView
from wolfstream.solver.stream.explanations import Explanation


def explained(view: HeadView, explanation: Explanation, most: int) -> dict[str, Any]:
    """Explain one row, with bounds on the number of features, and of members for and against."""
    found: dict[str, Any] = {"gradient": [_plain(one) for one in explanation.gradient[:most]]}
    if explanation.values is not None:
        found["values"] = [one._asdict() for one in explanation.values[:most]]
    contest, classes = explanation.contest, view.classes
    if contest is None or classes is None:
        return found
    found = {
        "for": classes[contest.wanted],
        "against": classes[contest.other],
        "log_odds": contest.log_odds,
        **found,
    }
    if explanation.members is not None:
        found["members"] = explanation.members.strongest(classes, most)
    return found


def _plain(influence: Any) -> dict[str, Any]:
    fields = {"feature": influence.feature, "gradient": influence.gradient}
    if influence.category is not None:
        fields["category"] = influence.category
    if influence.deviation is not None:
        fields["deviation"] = influence.deviation
    return fields
