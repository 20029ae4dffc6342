"""Room beyond the bound of a full stream, for the few commits that have to be written all the same.

A full log refuses samples. It still has to take a term, without which nobody could lead its models,
the checkpoint of a snapshot, which lets what fills the log be purged, and what ends a doubt. For
such a commit the bound is raised, and then put back: nothing is deleted where a stream that refuses
what is new has more than its bound.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from service.fleet.connection import NatsConnection

# In the metadata of a stream whose bound is raised: what it is otherwise.
_BOUND = "wolfstream-bytes"
# What headers and the server's own records take beside a commit's messages, and more.
_MARGIN_BYTES = 1 << 18


def bound_of(config: Mapping[str, Any]) -> int:
    """Return the bytes that a stream may have, but for a commit that has to be written."""
    return int((config.get("metadata") or {}).get(_BOUND, config["max_bytes"]))


def bounded(config: Mapping[str, Any], bound: int, raised: int = 0) -> dict[str, Any]:
    """Return the settings of a stream with a bound, which is raised to so many bytes for now.

    A replica that ends meanwhile leaves it raised; the next one that looks knows the bound.
    """
    metadata = {key: of for key, of in (config.get("metadata") or {}).items() if key != _BOUND}
    if raised > bound:
        return {**config, "max_bytes": raised, "metadata": {**metadata, _BOUND: str(bound)}}
    return {**config, "max_bytes": bound, "metadata": metadata}


@asynccontextmanager
async def more_room(nats: NatsConnection, stream: str, n_bytes: int) -> AsyncIterator[None]:
    """Within, a full stream takes so many bytes more, unless another replica takes them first.

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
