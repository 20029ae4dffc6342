"""The ids of requests, which connect a client's request with the server's responses and log.

An `X-Request-ID` of up to 128 visible ASCII characters is used and returned; any other is replaced.
Of a `traceparent` (W3C Trace Context) the trace id is logged, and returned with a span id of this
server's; an invalid one is ignored, as the standard says.

A request with neither header costs a look at its headers: an id is made only where one is needed,
in a problem or in the log.
"""

import os
import re
from collections.abc import Mapping
from contextvars import ContextVar

REQUEST_ID = "X-Request-ID"
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_TRACEPARENT = re.compile(
    rb"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(-.*)?"
)
_SAMPLED = 1


class Trace:
    """The ids of one request, or of a stream.

    returned: whether the response has any of them. trace_id, span_id: empty if it sent no valid
    traceparent. samples: how many it brought, to be learned or predicted.
    """

    # Attributes of the class, so that a request without ids costs only two look-ups.
    returned = _asked = False
    trace_id = span_id = _request_id = ""
    samples = _flags = 0

    def __init__(self, headers: Mapping[bytes, bytes]) -> None:
        if (given := headers.get(b"x-request-id")) is not None:
            self.returned = self._asked = True
            if _REQUEST_ID.fullmatch(given):
                self._request_id = given.decode()
        if (traceparent := headers.get(b"traceparent")) is not None:
            self._follow(traceparent)

    def _follow(self, traceparent: bytes) -> None:
        found = _TRACEPARENT.fullmatch(traceparent)
        if found and (found[1] != b"00" or found[4] is None):
            self.returned = True
            self.trace_id, self.span_id = found[2].decode(), os.urandom(8).hex()
            self._flags = int(found[3], 16) & _SAMPLED

    @property
    def request_id(self) -> str:
        """The client's request id, or one made at the first use."""
        if not self._request_id:
            self.returned = True
            self._request_id = os.urandom(16).hex()
        return self._request_id

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Headers of the response: the request id if the client or the log has it, and the span."""
        headers = []
        if self._asked or self._request_id:
            headers.append((REQUEST_ID.lower().encode(), self.request_id.encode()))
        if self.trace_id:
            span = f"00-{self.trace_id}-{self.span_id}-{self._flags:02x}"
            headers.append((b"traceparent", span.encode()))
        return headers

    def ids(self) -> dict[str, str]:
        """Return the ids in a line of the log."""
        if not self.trace_id:
            return {"request_id": self.request_id}
        return {
            "request_id": self.request_id,
            "trace_id": self.trace_id,
            "span_id": self.span_id,
        }


# The trace of the request that the present task works for, and the threads that it starts.
_CURRENT: ContextVar[Trace | None] = ContextVar("trace", default=None)


def begin(headers: Mapping[bytes, bytes]) -> Trace:
    """Return the trace of a request whose task begins. headers: by name in lower case."""
    trace = Trace(headers)
    _CURRENT.set(trace)
    return trace


def current() -> Trace | None:
    """Return the trace of the present request."""
    return _CURRENT.get()


def count_samples(samples: int) -> None:
    """Count samples that the present request brought."""
    trace = _CURRENT.get()
    if trace is not None:
        trace.samples += samples
