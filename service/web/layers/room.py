"""Room for a new connection where there are as many as there may be.

A connection gives way while the server waits for its client: for a request or the rest of one, for
the rest of a body, or for a response to be read. So clients that do nothing keep nobody out, and
least of all from other addresses: of all that may give way, those of the address that has the most
of them do first. A connection whose request is answered, or a stream that is open, never does.
"""

import ipaddress
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple, Protocol

# An address of IPv6 is one of as many as its network has: whoever has one has all of these.
_NETWORK_BITS = 64
# A client that reads slowly is given so long before it counts as one that does not.
UNREAD_SECONDS = 1.0


class Awaited(IntEnum):
    """What the server waits for from a client, in the order in which connections give way."""

    REQUEST = 0
    BODY = 1
    READING = 2


class Waiting(NamedTuple):
    """What a connection waits for, and since when, by the event loop's clock."""

    what: Awaited
    since: float


class Connection(Protocol):
    """A connection that may give way. client: its address and port; None if there is none."""

    client: tuple[str, int] | None

    def waiting(self, now: float) -> Waiting | None:
        """Return what it waits for; None if it may not give way."""

    def give_way(self) -> None:
        """Close it at once, with a response where one can still be made."""


def make_room(connections: Iterable[Connection], now: float, most: int) -> int:
    """Drop up to so many connections, those that may best be spared; return how many."""
    by_network = dict[str, list[tuple[Waiting, Connection]]]()
    for connection in connections:
        if (waiting := connection.waiting(now)) is not None:
            network = "" if connection.client is None else _network(connection.client[0])
            by_network.setdefault(network, []).append((waiting, connection))
    largest = max(by_network.values(), key=len, default=[])
    # So many that the next ones are of this network, too.
    second = sorted(map(len, by_network.values()))[-2] if len(by_network) > 1 else 0
    dropped = sorted(largest, key=lambda pair: pair[0])[: max(min(most, len(largest) - second), 1)]
    for _, connection in dropped:
        connection.give_way()
    return len(dropped)


@lru_cache(4096)
def _network(host: str) -> str:
    """Return the part of an address that a client cannot choose."""
    if ":" not in host:
        return host
    address = ipaddress.ip_address(host.partition("%")[0])
    return str(ipaddress.ip_network((address, _NETWORK_BITS), strict=False))
