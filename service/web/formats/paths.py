"""Paths that several layers ask about: which are public, and which belong to another protocol."""

INFERENCE_PREFIX = "/v2"
MODELS = "/v1/models"
# Between the replicas of a fleet, which seal what they send.
VIEWS = "/v1/fleet/views"
DOCS, OPENAPI, CONSOLE = "/docs", "/openapi.json", "/console"
_OPEN = frozenset(
    {
        "/",
        "/livez",
        "/readyz",
        VIEWS,
        DOCS,
        OPENAPI,
        f"{INFERENCE_PREFIX}/health/live",
        f"{INFERENCE_PREFIX}/health/ready",
    }
)


def speaks_inference(path: str) -> bool:
    """Return whether a path belongs to the Open Inference Protocol."""
    return path == INFERENCE_PREFIX or path.startswith(f"{INFERENCE_PREFIX}/")


def is_open(path: str) -> bool:
    """Return whether a path needs no key.

    Its answers are the same on every server, or say that it runs, or need a seal.
    """
    return path in _OPEN or path.startswith(f"{CONSOLE}/")
