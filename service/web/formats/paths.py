"""Which paths are public, and which belong to the Open Inference Protocol."""

from wolfstream.service.calls.lookup import target
from wolfstream.service.calls.table import INFERENCE

MODELS = "/v1/models"
DOCS, OPENAPI, CONSOLE = "/docs", "/openapi.json", "/console"
_PAGES = frozenset({"/", DOCS, OPENAPI})


def speaks_inference(path: str) -> bool:
    """Return whether a path belongs to the Open Inference Protocol."""
    return path == INFERENCE or path.startswith(f"{INFERENCE}/")


def is_public(path: str) -> bool:
    """Return whether a path needs no key.

    The responses of such a path are the same on every server, or only say that this one runs, or
    are sealed for another replica.
    """
    return path in _PAGES or path.startswith(f"{CONSOLE}/") or is_vital(path)


def is_vital(path: str) -> bool:
    """Return whether a path is of a call that needs no key: health, and views for replicas.

    Their small responses are also sent where there are too many connections.
    """
    at_path = target(path, "GET").at_path.values()
    return any(call.scope is None for call in at_path)
