"""Room beyond the bound of a full stream, for the few commits that must be written anyway.

A full log refuses samples. It must still take a term, without which no replica could lead its
models, the checkpoint of a snapshot, after which the log can be purged, and what ends a doubt. For
such a commit the bound is raised, and then restored: a stream that refuses new messages deletes
none when it has more than its bound.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from wolfstream.service.fleet.connection import NatsConnection

# In the metadata of a stream whose bound is raised: what it is otherwise.
_BOUND = "wolfstream-bytes"
# More than headers and the server's own records add to a commit's messages.
_MARGIN_BYTES = 1 << 18


def bound_of(config: Mapping[str, Any]) -> int:
    """Return the bytes that a stream may have, without the reserve."""
    return int((config.get("metadata") or {}).get(_BOUND, config["max_bytes"]))


def bounded(config: Mapping[str, Any], bound: int, raised: int = 0) -> dict[str, Any]:
    """Return the settings of a stream with a bound that is raised for now.

    If the replica ends meanwhile, it stays raised; the next replica that looks knows the bound.
    """
    metadata = {key: of for key, of in (config.get("metadata") or {}).items() if key != _BOUND}
    if raised > bound:
        return {**config, "max_bytes": raised, "metadata": {**metadata, _BOUND: str(bound)}}
    return {**config, "max_bytes": bound, "metadata": metadata}


@asynccontextmanager
async def more_room(nats: NatsConnection, stream: str, n_bytes: int) -> AsyncIterator[None]:
    """Let a full stream take more bytes within the block, unless another replica uses them first.

    On the connection's loop. Raises Refused, Unanswered.
    """
    found = await nats.call(f"STREAM.INFO.{stream}", {})
    raised = found["state"]["bytes"] + n_bytes + _MARGIN_BYTES
    config = found["config"]
    await nats.call(f"STREAM.UPDATE.{stream}", bounded(config, bound_of(config), raised))
    try:
        yield
    finally:
        config = (await nats.call(f"STREAM.INFO.{stream}", {}))["config"]
        await nats.call(f"STREAM.UPDATE.{stream}", bounded(config, bound_of(config)))
