"""The transport of one request's response, which sends its head together with its body."""

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class OneWrite:
    """A request's transport that keeps the head of the response until the body comes.

    Both are sent in one system call, which wakes a waiting client once.
    """

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._transport = cycle.transport
        self._completed = cycle.on_response
        self._head: bytes | None = None
        cycle.on_response = self._complete

    def write(self, data: bytes) -> None:
        """Write bytes; the first of a response are its head, which is kept for the next call."""
        if self._head is None and self._cycle.response_started:
            self._head = data
        elif self._head:
            self._transport.writelines((self._head, data))
            self._head = b""
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close after what was written."""
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Return whether the transport takes no more bytes."""
        return self._transport.is_closing()

    def _complete(self) -> None:
        self._flush()
        # Otherwise the two would refer to each other, and keep the request until they are found.
        self._cycle.transport, self._cycle.on_response = self._transport, self._completed
        self._completed()

    def _flush(self) -> None:
        """Write the head of a response without a body."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""
