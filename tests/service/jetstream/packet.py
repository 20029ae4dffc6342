"""What goes over the wire: a subject, a reply subject, headers and a body."""

from collections.abc import Mapping
from typing import NamedTuple

_VERSION, _END = b"NATS/1.0", b"\r\n"


class Packet(NamedTuple):
    """A message between a client and the server.

    headers: as bytes of the protocol; empty if there are none.
    """

    subject: str
    reply: str = ""
    headers: bytes = b""
    body: bytes = b""


def encoded(headers: Mapping[str, str] | None, status: str = "") -> bytes:
    """Return headers as the protocol writes them.

    status: such as "404 Message Not Found", which the server writes in the first line.
    """
    if not headers and not status:
        return b""
    first = f"{_VERSION.decode()} {status}" if status else _VERSION.decode()
    lines = [
        first,
        *(f"{name.strip()}: {value.strip()}" for name, value in (headers or {}).items()),
        "",
        "",
    ]
    return _END.decode().join(lines).encode()


def decoded(headers: bytes) -> dict[str, str]:
    """Return the names and values of headers, without a status."""
    pairs = (line.partition(b":") for line in headers.split(_END)[1:] if line)
    return {name.decode().strip(): value.decode().strip() for name, _, value in pairs}


def extended(headers: bytes, more: Mapping[str, str]) -> bytes:
    """Return headers with others behind them."""
    if not headers:
        return encoded(more)
    return headers[: -len(_END)] + encoded(more)[len(_VERSION) + len(_END) :]
