"""Explanations of predictions as plain data for a response."""

from typing import Any

from wolfstream.service.heads.protocol import HeadView
from wolfstream.solver.stream.explanations import Explanation


def explained(view: HeadView, explanation: Explanation, most: int) -> dict[str, Any]:
    """Return one row's explanation, with at most `most` features and members for and against."""
    result: dict[str, Any] = {
        "gradient": [_plain(influence) for influence in explanation.gradient[:most]]
    }
    if explanation.values is not None:
        result["values"] = [influence._asdict() for influence in explanation.values[:most]]
    contest, classes = explanation.contest, view.classes
    if contest is None or classes is None:
        return result
    result = {
        "for": classes[contest.wanted],
        "against": classes[contest.other],
        "log_odds": contest.log_odds,
        **result,
    }
    if explanation.members is not None:
        result["members"] = explanation.members.strongest(classes, most)
    return result


def _plain(influence: Any) -> dict[str, Any]:
    fields = {"feature": influence.feature, "gradient": influence.gradient}
    if influence.category is not None:
        fields["category"] = influence.category
    if influence.deviation is not None:
        fields["deviation"] = influence.deviation
    return fields
