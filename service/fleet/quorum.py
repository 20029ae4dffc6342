"""How long ago most NATS servers were heard together, which shows that this replica is not cut off.

And what the same answers say of the streams: how many copies are up to date, how full they are.

A client that is connected to a server knows little: the server may be cut off from the others,
while these have chosen other leaders of streams, and other replicas lead the models. So the leader
of a stream is asked, which says when it last heard the other copies: while most copies hear each
other here, nowhere else can a log go on.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from wolfstream.service.fleet.connection import NatsConnection, Refused, Unanswered
from wolfstream.service.fleet.reserve import bound_of
from wolfstream.service.fleet.streams import STREAMS

logger = logging.getLogger(__name__)

# Some stream is asked so often; while its leader is being chosen, the next ones are asked as well.
_ASK_SECONDS = 0.5


class StreamState(NamedTuple):
    """What the leader of a stream says of it.

    Attributes:
        missing_copies: that are gone, or have not caught up.
        n_bytes: that its messages take.
        most_bytes: that they may take; above it the stream is full.
    """

    missing_copies: int
    n_bytes: int
    most_bytes: int


class Quorum:
    """When most servers were last heard together. `run` asks on the connection's loop.

    Times are by time.monotonic(); any thread may read them.

    Args:
        nats: the connection.
        most_seconds: after a longer time without them, this replica may have missed what matters.

    Attributes:
        confirmed: when they were last heard.
        unbroken_since: since when they are heard without such a break.
        streams: the last that was heard of each stream.
    """

    def __init__(self, nats: NatsConnection, most_seconds: float) -> None:
        self._nats, self._most_seconds = nats, most_seconds
        self.confirmed = self.unbroken_since = time.monotonic()
        self.streams: Mapping[str, StreamState] = {}

    async def run(self) -> None:
        """Ask one stream after another until cancelled; none waits for the answers before it."""
        async with asyncio.TaskGroup() as asking:
            for stream in itertools.cycle(STREAMS):
                if self._nats.connected:
                    asking.create_task(self._ask(stream))
                await asyncio.sleep(_ASK_SECONDS)

    async def _ask(self, stream: str) -> None:
        asked = time.monotonic()
        try:
            info = await self._nats.call(f"STREAM.INFO.{stream}", {})
            heard_ago = majority_heard_ago(info)
            if heard_ago is not None:
                self.streams = {**self.streams, stream: state_of(info)}
        except (Refused, Unanswered):
            return
        except Exception:  # the next question may succeed
            logger.exception("the servers' quorum is not known")
            return
        if heard_ago is not None:
            self._confirm(asked - heard_ago)

    def _confirm(self, at: float) -> None:
        if at > self.confirmed + self._most_seconds:
            self.unbroken_since = time.monotonic()
        self.confirmed = max(self.confirmed, at)


def majority_heard_ago(info: Mapping[str, Any]) -> float | None:
    """Return how long ago a stream's leader heard most copies, in seconds; None without a leader.

    info: JetStream's description of a stream.
    """
    cluster = info.get("cluster") or {}
    if not cluster:  # a server of its own
        return 0.0
    if not cluster.get("leader"):
        return None
    ages = sorted(copy["active"] / 1e9 for copy in cluster.get("replicas") or [])
    needed = (1 + len(ages)) // 2  # beside the leader
    return ages[needed - 1] if needed else 0.0


def state_of(info: Mapping[str, Any]) -> StreamState:
    """Return what is told of a stream. info: see `majority_heard_ago`."""
    config, others = info["config"], (info.get("cluster") or {}).get("replicas") or []
    current = 1 + sum(copy["current"] and not copy.get("offline", False) for copy in others)
    missing = max(0, config["num_replicas"] - current)
    return StreamState(missing, info["state"]["bytes"], bound_of(config))
