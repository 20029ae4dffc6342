"""Why a published model predicts what it predicts, as plain data for an answer."""

from typing import Any

from service.errors import Invalid
from service.heads.protocol import HeadView
from service.spec.heads import HeadName
from solver.stream.explanations import Explanation
from solver.stream.reasons import NoGradient


def not_explained(head: HeadName, error: NoGradient) -> Invalid:
    """The refusal of rows that a head cannot explain."""
    return Invalid(
        f"the head {head} cannot explain these rows: {error}; leave explain out, or name another "
        "head in ?head=",
        [{"pointer": "/explain", "detail": f"{error}"}],
    )


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
