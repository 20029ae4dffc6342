"""When this replica last heard a majority of the NATS servers, and the state of the streams.

A connection to a server proves little: the server may be cut off from the others, which may have
elected new leaders of the streams, so that other replicas lead the models. So each stream's leader
is asked when it last heard the other copies. As long as it hears a majority of the copies, no log
can continue elsewhere.

The same responses say how many copies of a stream are up to date, and how full it is.
"""

import asyncio
import itertools
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from wolfstream.service.boot_clock import boot_seconds
from wolfstream.service.fleet.connection import NatsConnection, NatsRefusal, NatsTimeout
from wolfstream.service.fleet.streams import STREAMS, configured_bytes

logger = logging.getLogger(__name__)

# Time between two requests. The streams take turns, so an election of one stream's leader does not
# delay the answers of the others.
_ASK_SECONDS = 0.5


class StreamState(NamedTuple):
    """A stream, as its leader describes it."""

    missing_copies: int  # copies that are gone or have not caught up
    n_bytes: int  # size of its messages
    most_bytes: int  # size at which it is full


class Quorum:
    """When a majority of the servers was last heard. `run` asks on the connection's loop.

    Times are by boot_seconds(); any thread may read them.

    Attributes:
        confirmed: when the majority was last heard.
        unbroken_since: since when it has been heard without a long break.
        streams: stream -> its last known state.
    """

    def __init__(self, nats: NatsConnection, max_break_seconds: float) -> None:
        """Begin as if the majority had just been heard.

        Args:
            nats: the connection.
            max_break_seconds: after a longer break, this replica may have missed announcements.
        """
        self._nats, self._max_break_seconds = nats, max_break_seconds
        self.confirmed = self.unbroken_since = boot_seconds()
        self.streams: Mapping[str, StreamState] = {}

    async def run(self) -> None:
        """Ask about one stream after another, without waiting for responses, until cancelled."""
        async with asyncio.TaskGroup() as asking:
            for stream in itertools.cycle(STREAMS):
                if self._nats.connected:
                    asking.create_task(self._ask(stream))
                await asyncio.sleep(_ASK_SECONDS)

    async def _ask(self, stream: str) -> None:
        sent = boot_seconds()
        try:
            info = await self._nats.call(f"STREAM.INFO.{stream}", {})
            heard_ago = majority_heard_ago(info)
            if heard_ago is not None:
                self.streams = {**self.streams, stream: stream_state(info)}
        except (NatsRefusal, NatsTimeout):
            return
        except Exception:  # the next request may succeed
            logger.exception("quorum of the NATS servers not known: stream=%s", stream)
            return
        if heard_ago is not None:
            self._confirm(sent - heard_ago)

    def _confirm(self, at: float) -> None:
        """Record that the majority was heard at a time."""
        if at > self.confirmed + self._max_break_seconds:
            self.unbroken_since = boot_seconds()
        self.confirmed = max(self.confirmed, at)


def majority_heard_ago(info: Mapping[str, Any]) -> float | None:
    """Return how many seconds ago a stream's leader heard most copies; None without a leader.

    Args:
        info: JetStream's response to STREAM.INFO.
    """
    cluster = info.get("cluster") or {}
    if not cluster:  # a single server
        return 0.0
    if not cluster.get("leader"):
        return None
    ages = sorted(copy["active"] / 1e9 for copy in cluster.get("replicas") or [])
    needed = (1 + len(ages)) // 2  # copies that make a majority together with the leader
    return ages[needed - 1] if needed else 0.0


def stream_state(info: Mapping[str, Any]) -> StreamState:
    """Return the state of a stream.

    Args:
        info: JetStream's response to STREAM.INFO.
    """
    config, others = info["config"], (info.get("cluster") or {}).get("replicas") or []
    current = 1 + sum(copy["current"] and not copy.get("offline", False) for copy in others)
    missing = max(0, config["num_replicas"] - current)
    return StreamState(missing, info["state"]["bytes"], configured_bytes(config))
