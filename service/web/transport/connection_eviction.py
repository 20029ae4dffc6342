"""Closes connections to make room for a new one, once the limit on their number is reached.

A connection may be closed while the server waits for its client to send a request or the rest of
one, to send the rest of a body, to read a response, or to end TLS after the server has. So idle
clients cannot lock out others. The network with the most such connections loses some first, so idle
clients cannot lock out clients with other addresses in particular. Connections whose requests are
being answered are never closed, nor are open streams. Where these have taken all connections,
networks that have few of them still get some more.
"""

import ipaddress
from collections import Counter
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

# The owner of an IPv6 address usually owns all addresses with the same prefix of this length.
_NETWORK_BITS = 64
# A network is rare if it has less than this part of the connections of the one with the most.
_RARE = 4
# A client that has not read for this long counts as not reading.
UNREAD_SECONDS = 1.0


class AwaitedStep(IntEnum):
    """What a client has to do next; connections are closed in this order."""

    REQUEST = 0  # send a request, or end TLS
    BODY = 1  # send the rest of a body
    READ = 2  # read a response


class ClientWait(NamedTuple):
    """What a client has to do next, and since when the server has been waiting (loop's clock)."""

    step: AwaitedStep
    since: float


class Connection(Protocol):
    """A connection that can be closed to make room for another."""

    client: tuple[str, int] | None  # its address and port, if it has one

    def waiting(self, now: float) -> ClientWait | None:
        """Return what the client has to do next; None if the connection must not be closed."""

    def give_way(self) -> None:
        """Close the connection at once, with a response if one can still be sent."""


def is_lingering(transport: Any) -> bool:
    """Return whether a closed connection, all of which is sent, waits for its client to end TLS."""
    is_closed = transport.is_closing() and not transport.get_write_buffer_size()
    return is_closed and transport.get_extra_info("ssl_object") is not None


def make_room(connections: Iterable[Connection], now: float, most: int) -> int:
    """Close up to `most` connections of the network that has the most; return their number.

    Args:
        connections: all connections.
        now: the time, by the event loop's clock.
        most: the maximum number to close.
    """
    by_network = dict[str, list[tuple[ClientWait, Connection]]]()
    for connection in connections:
        if (waiting := connection.waiting(now)) is not None:
            by_network.setdefault(network_of(connection.client), []).append((waiting, connection))
    largest = max(by_network.values(), key=len, default=[])
    # It keeps at least as many as the second largest network has, but loses at least one.
    second = sorted(map(len, by_network.values()))[-2] if len(by_network) > 1 else 0
    closed = sorted(largest, key=lambda pair: pair[0])[: max(min(most, len(largest) - second), 1)]
    for _, connection in closed:
        connection.give_way()
    return len(closed)


def is_rare(client: tuple[str, int] | None, connections: Iterable[Connection]) -> bool:
    """Return whether a client's network has less than a quarter of the most that a network has."""
    counts = Counter(network_of(connection.client) for connection in connections)
    return counts[network_of(client)] * _RARE < max(counts.values(), default=0)


def network_of(client: tuple[str, int] | None) -> str:
    """Return the network of a client: the part of its address that it cannot choose freely."""
    return "" if client is None else _network(client[0])


@lru_cache(4096)
def _network(host: str) -> str:
    if ":" not in host:
        return host
    address = ipaddress.ip_address(host.partition("%")[0])
    return str(ipaddress.ip_network((address, _NETWORK_BITS), strict=False))
