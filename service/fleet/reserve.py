"""Space beyond the bound of a full stream, for the few commits that must be written nevertheless.

A full log refuses samples. It must still take a new term, without which nobody could lead the
model; the checkpoint of a snapshot, without which the log could not be purged; and a commit that
resolves a doubt. For such a commit the stream's bound is raised, and then restored. That deletes
nothing: a stream that discards new messages keeps those above its bound.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from wolfstream.service.fleet.connection import NatsConnection

# Metadata of a stream whose bound is raised: its usual bound.
_BOUND = "wolfstream-bytes"
# More than headers and the server's own records add to the messages of a commit.
_MARGIN_BYTES = 1 << 18


def configured_bytes(config: Mapping[str, Any]) -> int:
    """Return the usual bound of a stream in bytes, also while it is raised."""
    return int((config.get("metadata") or {}).get(_BOUND, config["max_bytes"]))


def with_bound(config: Mapping[str, Any], bound: int, raised: int = 0) -> dict[str, Any]:
    """Return a stream's configuration with a bound.

    If a replica ends before it restores a raised bound, another one does. So the configuration also
    has the usual bound.

    Args:
        config: the configuration.
        bound: the usual bound in bytes.
        raised: the present bound, if it is higher.
    """
    metadata = {
        key: value for key, value in (config.get("metadata") or {}).items() if key != _BOUND
    }
    if raised > bound:
        return {**config, "max_bytes": raised, "metadata": {**metadata, _BOUND: str(bound)}}
    return {**config, "max_bytes": bound, "metadata": metadata}


@asynccontextmanager
async def more_room(nats: NatsConnection, stream: str, n_bytes: int) -> AsyncIterator[None]:
    """Raise the bound of a full stream by some bytes within the block.

    Another replica may use these bytes first. Runs on the connection's loop.

    Args:
        nats: the connection.
        stream: name of the stream.
        n_bytes: number of bytes.

    Raises NatsRefusal, NatsTimeout.
    """
    info = await nats.call(f"STREAM.INFO.{stream}", {})
    raised = info["state"]["bytes"] + n_bytes + _MARGIN_BYTES
    config = info["config"]
    await nats.call(f"STREAM.UPDATE.{stream}", with_bound(config, configured_bytes(config), raised))
    try:
        yield
    finally:
        config = (await nats.call(f"STREAM.INFO.{stream}", {}))["config"]
        await nats.call(f"STREAM.UPDATE.{stream}", with_bound(config, configured_bytes(config)))
