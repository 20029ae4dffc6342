"""The headers of a request by name, for all layers that ask for some of them."""

from collections.abc import Mapping

from starlette.types import Scope

_KEPT = "wolfstream.headers"


def headers_by_name(scope: Scope) -> Mapping[bytes, bytes]:
    """Return the headers of a request by name in lower case; of a name that came twice, the first.

    They are kept in the scope: looking each header up in the list of all takes several times as
    long.
    """
    found: Mapping[bytes, bytes] | None = scope.get(_KEPT)
    if found is None:
        found = scope[_KEPT] = dict(reversed(scope["headers"]))
    return found
