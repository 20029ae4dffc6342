"""What a call that learns asks in three of its headers."""

from typing import NamedTuple

from starlette.types import Scope

from wolfstream.service.model.revision import Revision
from wolfstream.service.web.formats.moments import read_if_match
from wolfstream.service.web.formats.prefer import Preference, read_preference

_HEADERS = (b"idempotency-key", b"prefer", b"if-match")


class Conditions(NamedTuple):
    """keys: the values of `Idempotency-Key`. expected: the states of the model that it is for."""

    keys: list[str]
    preference: Preference | None
    expected: tuple[Revision, ...]


_NONE = Conditions([], None, ())


def read_conditions(scope: Scope, most_seconds: float) -> Conditions:
    """Return the conditions of a request. Raises Invalid.

    most_seconds: see `prefer.read_preference`.
    """
    if scope["state"]["headers"].keys().isdisjoint(_HEADERS):
        return _NONE
    keys, prefer, if_match = (
        [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]
        for wanted in _HEADERS
    )
    return Conditions(keys, read_preference(prefer, most_seconds), read_if_match(if_match))
