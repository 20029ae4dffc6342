"""One request of a client as steps: it is sent, and sent again while that may help."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from wolfstream.service.client.errors import ClientError, Refused
from wolfstream.service.client.steps import Patience, Reply, Request, Retry, Steps
from wolfstream.service.client.wire import decode_reply

T = TypeVar("T")


class Asking:
    """Requests to a server. retry: how long a failing one is tried again."""

    def __init__(self, retry: Retry) -> None:
        self.retry = retry

    def ask(self, request: Request) -> Steps[dict[str, Any]]:
        """Send a request, retry it while that may help, return the response. Raises ClientError."""
        return self.tried(request, decode_reply)

    def tried(self, request: Request, decode: Callable[[Request, Reply], T]) -> Steps[T]:
        """Send a request as `ask` does, and return what `decode` makes of the response."""
        patience = Patience(self.retry)
        while True:
            try:
                reply = yield request
                patience.answered()
                return decode(request, reply)
            except ClientError as error:
                if not request.again and not isinstance(error, Refused):
                    raise
                pause = patience.pause(error)
            yield pause


def matching(if_match: str | None, responses: Sequence[Mapping[str, Any]] = ()) -> dict[str, str]:
    """Return the header that makes a request depend on a model's state.

    The state is `if_match`; where that has a sequence, it is the state after the last response.
    """
    if if_match is None:
        return {}
    if responses and ":" in if_match:
        if_match = f"{responses[-1]['epoch']}:{responses[-1]['sequence']}"
    return {"if-match": f'"{if_match}"'}
