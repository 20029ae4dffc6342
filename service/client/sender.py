"""Sends a request of a client, as steps, again and again while that may help."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from wolfstream.service.client.errors import ClientError, Refused
from wolfstream.service.client.steps import Backoff, Reply, Request, Retry, Steps
from wolfstream.service.client.wire import decode_reply

T = TypeVar("T")


class Sender:
    """Sends requests to a server."""

    def __init__(self, retry: Retry) -> None:
        """Send requests.

        Args:
            retry: how long a failing request is sent again.
        """
        self.retry = retry

    def ask(self, request: Request, retry: Retry | None = None) -> Steps[dict[str, Any]]:
        """Send any request until it succeeds; return the response. Raises ClientError.

        Args:
            request: to send.
            retry: how long it is sent again; None for as long as other requests are.
        """
        return self.send(request, decode_reply, retry)

    def send(
        self, request: Request, decode: Callable[[Request, Reply], T], retry: Retry | None = None
    ) -> Steps[T]:
        """Send a request until it succeeds; return the decoded response. Raises ClientError."""
        backoff = Backoff(retry or self.retry)
        while True:
            try:
                reply = yield request
                backoff.record_answer()
                return decode(request, reply)
            except ClientError as error:
                if not request.repeatable and not isinstance(error, Refused):
                    raise
                pause = backoff.pause(error)
            yield pause


def if_match_header(
    if_match: str | None, responses: Sequence[Mapping[str, Any]] = ()
) -> dict[str, str]:
    """Return the header that makes a request depend on a model's revision.

    Args:
        if_match: the revision, "EPOCH:SEQUENCE", or an epoch; None for no header.
        responses: to earlier requests of the same call. A revision is then that of the last one.
    """
    if if_match is None:
        return {}
    if responses and ":" in if_match:
        if_match = f"{responses[-1]['epoch']}:{responses[-1]['sequence']}"
    return {"if-match": f'"{if_match}"'}
