"""The query parameters of predictions that may also be fields of the body."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from wolfstream.service.errors import Invalid
from wolfstream.service.samples.validation import (
    Question,
    read_confidence,
    read_costs,
    read_explain,
)

_NUMBER = re.compile(r"[0-9]{0,9}\.?[0-9]{1,18}")


def with_query(question: Question, query: Mapping[str, str]) -> Question:
    """Return a question with the values of its query, which override the body. Raises Invalid."""
    if not query:
        return question
    if read_flag("probability", query.get("probability")):
        question = question._replace(probability=True)
    if (given := query.get("confidence")) is not None:
        question = question._replace(confidence=read_confidence(_number(given)))
    if (given := query.get("explain")) is not None:
        question = question._replace(explain=read_explain(_number(given)))
    if (given := query.get("costs")) is not None:
        question = question._replace(costs=read_costs(_object(given)))
    return question


def read_flag(name: str, given: str | None) -> bool:
    """Return whether a query parameter is `true`; False if it is absent. Raises Invalid."""
    if given not in (None, "true", "false"):
        raise Invalid(f"{name} must be true or false, not {given[:40]!r}")
    return given == "true"


def _object(given: str) -> Any:
    """Return the value of JSON in a query; None for anything else."""
    try:
        return from_json(given, allow_inf_nan=False)
    except ValueError:
        return None


def _number(given: str) -> float | int | None:
    """Return a number in a query; None for anything else."""
    if not _NUMBER.fullmatch(given):
        return None
    return int(given) if given.isdecimal() else float(given)
