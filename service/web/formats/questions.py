"""What a query asks of predictions, in addition to their body."""

import re
from collections.abc import Mapping

from wolfstream.service.errors import Invalid
from wolfstream.service.samples.validation import Question, read_confidence, read_explain

_NUMBER = re.compile(r"[0-9]{0,9}\.?[0-9]{1,18}")


def with_query(question: Question, query: Mapping[str, str]) -> Question:
    """Return the question with what its query asks, which counts where both ask. Raises Invalid."""
    if not query:
        return question
    if read_flag("probability", query.get("probability")):
        question = question._replace(probability=True)
    if (given := query.get("confidence")) is not None:
        question = question._replace(confidence=read_confidence(_number(given)))
    if (given := query.get("explain")) is not None:
        question = question._replace(explain=read_explain(_number(given)))
    return question


def read_flag(name: str, given: str | None) -> bool:
    """Return whether a query parameter says true. Raises Invalid."""
    if given not in (None, "true", "false"):
        raise Invalid(f"{name} must be true or false, not {given[:40]!r}")
    return given == "true"


def _number(given: str) -> float | int | None:
    """Return a number in a query; None for anything else."""
    if not _NUMBER.fullmatch(given):
        return None
    return int(given) if given.isdecimal() else float(given)
