"""The headers that a learning call may have: `Idempotency-Key`, `Prefer` and `If-Match`."""

from typing import NamedTuple

from starlette.types import Scope

from wolfstream.service.model.revision import Revision
from wolfstream.service.web.formats.prefer import Preference, read_preference
from wolfstream.service.web.formats.revisions import read_if_match

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
