"""Sends the head of a response together with its body."""

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class CoalescingTransport:
    """The transport of one request, which holds the head of the response until the body follows.

    Both are sent with one system call, so a waiting client wakes up only once.
    """

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._transport = cycle.transport
        self._on_response = cycle.on_response
        # The head while it is held; empty once it has been sent, None before the response.
        self._head: bytes | None = None
        cycle.on_response = self._complete

    def write(self, data: bytes) -> None:
        """Write bytes; the first bytes of a response, its head, are held until the next call."""
        if self._head is None and self._cycle.response_started:
            self._head = data
        elif self._head:
            self._transport.writelines((self._head, data))
            self._head = b""
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close the transport once everything is written."""
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Return whether the transport accepts no more bytes."""
        return self._transport.is_closing()

    def _complete(self) -> None:
        self._flush()
        # Break the reference cycle, which would keep the request until the next collection.
        self._cycle.transport, self._cycle.on_response = self._transport, self._on_response
        self._on_response()

    def _flush(self) -> None:
        """Write the head if the response has no body."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""
