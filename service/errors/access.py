"""Requests that this client may not make."""

from wolfstream.service.errors.refusal import Refusal, SampleError
from wolfstream.service.errors.unavailable import Unavailable


class Unauthenticated(Refusal):
    """The server needs a key, and the request has none or an unknown one."""

    slug, title = "unauthenticated", "A key is needed"


class Forbidden(Refusal):
    """The key lacks the scope, or is not for this model."""

    slug, title = "forbidden", "The key does not allow this"


class ForeignHost(Refusal):
    """The request names the server by a name that it does not have."""

    slug, title = "foreign-host", "The server is not known under this name"


class ForeignOrigin(Refusal):
    """A browser sends the request for a page of another site."""

    slug, title = "foreign-origin", "Pages of this site may not use the server"


class QuotaExceeded(Unavailable):
    """The client has used up what its key allows for now."""

    slug, title = "quota-exceeded", "The key's quota is used up"

    def __init__(
        self,
        detail: str,
        errors: list[SampleError] | None = None,
        retry_after_seconds: int = 1,
    ) -> None:
        super().__init__(detail, errors)
        self.retry_after_seconds = retry_after_seconds
