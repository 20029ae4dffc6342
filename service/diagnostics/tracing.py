"""The ids of requests, which connect a client's request with the server's responses and log.

An `X-Request-ID` of up to 128 visible ASCII characters is used and returned; any other is replaced.
The trace id of a `traceparent` (W3C Trace Context) is logged, and returned with a span id of this
server. An invalid `traceparent` is ignored, as the standard requires.

A request without these headers costs only two look-ups: its id is generated when it is first
needed, for a problem or for the log.
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

    Attributes:
        returned: whether the response has any of the ids.
        trace_id: empty if the request has no valid traceparent.
        span_id: empty if the request has no valid traceparent.
        samples: number of samples in the request, to be learned or predicted.
    """

    # Defaults are attributes of the class, so that a request without ids costs only two look-ups.
    returned = _has_request_id = False
    trace_id = span_id = _request_id = ""
    samples = _flags = 0

    def __init__(self, headers: Mapping[bytes, bytes]) -> None:
        """Read the ids in a request's headers.

        Args:
            headers: the headers, by name in lower case.
        """
        if (request_id := headers.get(b"x-request-id")) is not None:
            self.returned = self._has_request_id = True
            if _REQUEST_ID.fullmatch(request_id):
                self._request_id = request_id.decode()
        if (traceparent := headers.get(b"traceparent")) is not None:
            self._read_traceparent(traceparent)

    def _read_traceparent(self, traceparent: bytes) -> None:
        match = _TRACEPARENT.fullmatch(traceparent)
        # Version 00 has no further fields; later versions may.
        if match and (match[1] != b"00" or match[4] is None):
            self.returned = True
            self.trace_id, self.span_id = match[2].decode(), os.urandom(8).hex()
            self._flags = int(match[3], 16) & _SAMPLED

    @property
    def request_id(self) -> str:
        """The client's request id, or one that is generated at the first use."""
        if not self._request_id:
            self.returned = True
            self._request_id = os.urandom(16).hex()
        return self._request_id

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return headers for the response.

        They have the request id if the client sent one or the log has one, and the span if the
        request has a valid traceparent.
        """
        headers = []
        if self._has_request_id or self._request_id:
            headers.append((REQUEST_ID.lower().encode(), self.request_id.encode()))
        if self.trace_id:
            span = f"00-{self.trace_id}-{self.span_id}-{self._flags:02x}"
            headers.append((b"traceparent", span.encode()))
        return headers

    def ids(self) -> dict[str, str]:
        """Return the ids for a line of the log."""
        if not self.trace_id:
            return {"request_id": self.request_id}
        return {
            "request_id": self.request_id,
            "trace_id": self.trace_id,
            "span_id": self.span_id,
        }


# The trace of the request that the current task, or the thread that it started, handles.
_CURRENT: ContextVar[Trace | None] = ContextVar("trace", default=None)


def begin(headers: Mapping[bytes, bytes]) -> Trace:
    """Return the trace of a request, and make it this task's current trace.

    Args:
        headers: the request's headers, by name in lower case.
    """
    trace = Trace(headers)
    _CURRENT.set(trace)
    return trace


def current() -> Trace | None:
    """Return the trace of the current request; None outside of requests."""
    return _CURRENT.get()


def count_samples(samples: int) -> None:
    """Add to the number of samples in the current request."""
    trace = _CURRENT.get()
    if trace is not None:
        trace.samples += samples
