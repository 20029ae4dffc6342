"""Revisions in requests and responses: `If-Match`, `min_sequence`, `max_lag` and `ETag`.

A response with a model's epoch and sequence has them as its entity tag, "EPOCH:SEQUENCE". A request
with that tag in `If-Match` is carried out only while the model is at that revision; a request with
`"EPOCH"` is carried out at any revision of that epoch.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.types import Scope

from wolfstream.service.errors import Invalid
from wolfstream.service.model.revision import Revision, read_awaited, read_tag
from wolfstream.service.web.formats.prefer import Preference, read_preference

_HEADERS = (b"idempotency-key", b"prefer", b"if-match")


class Conditions(NamedTuple):
    """What the headers of a learning call ask for."""

    keys: list[str]  # the values of `Idempotency-Key`
    preference: Preference | None
    expected: tuple[Revision, ...]  # revisions at which to carry out the call; empty for any


_NONE = Conditions([], None, ())


def read_conditions(scope: Scope, max_seconds: float) -> Conditions:
    """Return the conditions of a request. Raises Invalid.

    Args:
        scope: the request.
        max_seconds: the longest wait that `Prefer` can request.
    """
    if scope["state"]["headers"].keys().isdisjoint(_HEADERS):  # the usual case
        return _NONE
    keys, prefer, if_match = (
        [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]
        for wanted in _HEADERS
    )
    return Conditions(keys, read_preference(prefer, max_seconds), read_if_match(if_match))


_MAX_TAGS, _MAX_DIGITS = 16, 18
_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


def read_min_sequence(given: str | None) -> Revision | None:
    """Return the revision to wait for: a sequence, or EPOCH:SEQUENCE. Raises Invalid."""
    if given is not None and given.isascii() and given.isdecimal() and len(given) <= _MAX_DIGITS:
        return read_awaited(int(given))
    return read_awaited(given)


def read_max_lag(query: bytes) -> float | None:
    """Return the seconds by which a prediction may be out of date; None if the query has none.

    Raises Invalid.
    """
    if b"max_lag" not in query:
        return None
    seconds = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)).get("max_lag")
    if seconds is None:
        return None
    if not _SECONDS.fullmatch(seconds):
        raise Invalid("max_lag must be a number of seconds, such as 3600 or 0.5")
    return float(seconds)


def read_if_match(values: Sequence[str]) -> tuple[Revision, ...]:
    """Return the revisions in the `If-Match` headers of a request; empty for any revision.

    Raises Invalid.
    """
    if not values:
        return ()
    tags = [tag.strip() for tag in ",".join(values).split(",")]
    if tags == ["*"]:
        return ()
    if len(tags) > _MAX_TAGS:
        raise Invalid(f"If-Match takes at most {_MAX_TAGS} entity tags")
    return tuple(read_tag(tag) for tag in tags)


def etag_header(answer: Any) -> Mapping[str, str]:
    """Return the `ETag` header of an answer; empty if the answer is not about one revision."""
    if isinstance(answer, dict) and "epoch" in answer and "model" in answer:
        return {"ETag": f'"{answer["epoch"]}:{answer["sequence"]}"'}
    return {}
