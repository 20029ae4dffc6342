"""Requests that may succeed later: the server is full, busy or not ready."""

from wolfstream.service.errors.refusal import Refusal


class Unavailable(Refusal):
    """The request may succeed later; `retry_after_seconds` says when to retry."""

    slug, title = "unavailable", "The server cannot do this now"
    retry_after_seconds = 1


class TooManyConnections(Unavailable):
    """The server has reached its limit of connections."""

    slug, title = "too-many-connections", "Too many connections are open"


class QueueFull(Unavailable):
    """Too many samples wait to be learned."""

    slug, title = "queue-full", "Too many samples are waiting"


class MemoryFull(Unavailable):
    """The requests that arrive, are decoded and are answered take too much memory together."""

    slug, title = "memory-full", "Too many large requests at a time"


class JobsFull(Unavailable):
    """Too many refits are waiting for their turn."""

    slug, title = "jobs-full", "Too many refits are waiting"
    retry_after_seconds = 10


class RefitStopped(Unavailable):
    """A refit was stopped before it had finished."""

    slug, title = "refit-stopped", "The refit was stopped"


class LagsBehind(Unavailable):
    """The challenger has too many samples of its champion's log before it."""

    slug, title = "lags-behind", "The challenger lags behind"


class SnapshotFailed(Unavailable):
    """No snapshot was made; the model and its journal are as before."""

    slug, title = "snapshot-failed", "The snapshot could not be made"


class NotReady(Unavailable):
    """The server is starting or stopping."""

    slug, title = "not-ready", "The server is not ready"


class NotReached(Unavailable):
    """The model did not reach the wanted sequence in time."""

    slug, title = "not-reached", "The sequence has not been reached"
