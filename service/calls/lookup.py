"""Which call a request is for, by its method and path."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from wolfstream.service.calls.table import CALLS, WEBSOCKET, Call

# Shorter paths are cached; one of 60 kB, which no call has, would stay in memory.
LONGEST_CACHED = 256
_MODELS = (["", "v1", "models"], ["", "v2", "models"])


class Target(NamedTuple):
    """What a method and a path are for.

    call: None where no call has this method at this path.
    at_path: all calls at the path, by method.
    model: the name in the path; None where that is about no model.
    of_models: whether the path is about one model or all of them.
    """

    call: Call | None
    at_path: Mapping[str, Call]
    model: str | None
    of_models: bool


def target_of(scope: Mapping[str, Any]) -> Target:
    """Return what a request or websocket of ASGI is for."""
    return target(scope["path"], scope.get("method", WEBSOCKET))


def is_for(scope: Mapping[str, Any], name: str) -> bool:
    """Return whether a request of ASGI is for the call of this name."""
    call = target_of(scope).call
    return call is not None and call.name == name


def target(path: str, method: str) -> Target:
    """Return what a request is for; `WEBSOCKET` is the method of a stream."""
    return _cached(path, method) if len(path) <= LONGEST_CACHED else _find(path, method)


def _find(path: str, method: str) -> Target:
    parts = path.split("/")
    node = _TREE
    for part in parts:
        node = node.get(part) or (node.get(_ANY, {}) if part else {})
    at_path = node.get(_CALLS, {})
    of_models = parts[:3] in _MODELS
    model = parts[3] if of_models and len(parts) > 3 else None
    return Target(at_path.get(method), at_path, model, of_models)


_cached = lru_cache(maxsize=1024)(_find)


# In the tree of paths: a part that may be any text, and the calls that end at a node. No part of a
# path has a slash, so none is one of these.
_ANY, _CALLS = "/any", "/calls"


def _tree() -> dict[str, Any]:
    """Return the paths of all calls as a tree of their parts."""
    root = dict[str, Any]()
    for call in CALLS:
        node = root
        for part in call.path.split("/"):
            node = node.setdefault(_ANY if part.startswith("{") else part, {})
        node.setdefault(_CALLS, {})[call.method] = call
    return root


_TREE = _tree()
