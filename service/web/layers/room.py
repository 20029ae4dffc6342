"""Closes connections to make room for a new one, once the limit on their number is reached.

A connection may be closed while the server waits for its client: to send a request or the rest of
one, to send the rest of a body, or to read a response. So clients that do nothing cannot keep
others out. The network with the most such connections loses some first, so least of all can they
keep out clients with other addresses. A connection whose request is being answered is never
closed, nor is an open stream.
"""

import ipaddress
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple, Protocol

# Whoever has an IPv6 address usually has all addresses of its network of this size.
_NETWORK_BITS = 64
# A client that has not read for so long counts as not reading.
UNREAD_SECONDS = 1.0


class AwaitedStep(IntEnum):
    """What a client has to do next, in the order in which connections are closed."""

    REQUEST = 0  # send a request
    BODY = 1  # send the rest of a body
    READ = 2  # read a response


class ClientWait(NamedTuple):
    """What the server waits for from a client, and since when, by the event loop's clock."""

    step: AwaitedStep
    since: float


class Connection(Protocol):
    """A connection that can be closed to make room for another."""

    client: tuple[str, int] | None  # its address and port, if it has one

    def waiting(self, now: float) -> ClientWait | None:
        """Return what the server waits for from the client; None if it must not be closed."""

    def give_way(self) -> None:
        """Close it at once, with a response where one can still be made."""


def make_room(connections: Iterable[Connection], now: float, most: int) -> int:
    """Close up to `most` connections of the network that has the most; return how many."""
    by_network = dict[str, list[tuple[ClientWait, Connection]]]()
    for connection in connections:
        if (waiting := connection.waiting(now)) is not None:
            network = "" if connection.client is None else _network(connection.client[0])
            by_network.setdefault(network, []).append((waiting, connection))
    largest = max(by_network.values(), key=len, default=[])
    # It is left with no fewer than the second largest network, but loses at least one.
    second = sorted(map(len, by_network.values()))[-2] if len(by_network) > 1 else 0
    closed = sorted(largest, key=lambda pair: pair[0])[: max(min(most, len(largest) - second), 1)]
    for _, connection in closed:
        connection.give_way()
    return len(closed)


@lru_cache(4096)
def _network(host: str) -> str:
    """Return the part of an address that its owner cannot choose freely."""
    if ":" not in host:
        return host
    address = ipaddress.ip_address(host.partition("%")[0])
    return str(ipaddress.ip_network((address, _NETWORK_BITS), strict=False))
