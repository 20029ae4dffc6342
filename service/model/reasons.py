"""Why a published model predicts what it predicts, as plain data for an answer."""

from typing import Any

from service.heads.protocol import HeadView
from solver.stream.explanations import Explanation


def explained(view: HeadView, explanation: Explanation, most: int) -> dict[str, Any]:
    """One row's explanation, with at most so many features, and members each way."""
    found: dict[str, Any] = {"gradient": [_plain(one) for one in explanation.gradient[:most]]}
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
    told = {"feature": influence.feature, "gradient": influence.gradient}
    if influence.category is not None:
        told["category"] = influence.category
    if influence.deviation is not None:
        told["deviation"] = influence.deviation
    return told
