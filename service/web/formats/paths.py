"""Paths that several layers ask about: which are public, and which belong to another protocol."""

INFERENCE_PREFIX = "/v2"
DOCS, OPENAPI = "/docs", "/openapi.json"
# Their answers are the same on every server, or say only that it runs: they need no key.
OPEN = frozenset(
    {
        "/",
        "/livez",
        "/readyz",
        DOCS,
        OPENAPI,
        f"{INFERENCE_PREFIX}/health/live",
        f"{INFERENCE_PREFIX}/health/ready",
    }
)


def speaks_inference(path: str) -> bool:
    """Whether a path belongs to the Open Inference Protocol."""
    return path == INFERENCE_PREFIX or path.startswith(f"{INFERENCE_PREFIX}/")
