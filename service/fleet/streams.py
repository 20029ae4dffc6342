"""The streams of a fleet: their names and subjects, and their creation.

    WOLFSTREAM_LOG_0 ...    wolfstream.log.<stream>.<model>            logs
    WOLFSTREAM_STATES       wolfstream.states.<model>.at.<sequence>    snapshots
                            wolfstream.states.<model>.pinned.<name>    states pinned by rollbacks
                            wolfstream.states.<model>.parts.<id>.<n>   bytes of both
                            wolfstream.states.<model>.answers          archives of keys

Buckets: `wolfstream-models` and `wolfstream-keys`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from wolfstream.service.errors import StartupError
from wolfstream.service.fleet.connection import (
    NO_ROOM,
    NatsConnection,
    NatsForbidden,
    NatsRefusal,
    NatsTimeout,
)

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


logger = logging.getLogger(__name__)

# Number of streams for logs. Each is work for its servers even while it is idle; with fewer, more
# concurrent appends would wait for each other.
_LOGS = 8
STATES = "WOLFSTREAM_STATES"
MODELS_BUCKET, KEYS_BUCKET = "wolfstream-models", "wolfstream-keys"
STREAMS = (*(f"WOLFSTREAM_LOG_{log}" for log in range(_LOGS)), STATES)
_REPLICAS = 3
# JetStream's error codes: a single server cannot store several copies; JetStream is not enabled for
# the account or on the server.
_NOT_CLUSTERED = 10074
_WITHOUT_JETSTREAM = "10039", "10076"
_OLDEST_SERVER = (2, 12)
# Servers that were just started need some seconds to find each other.
_RETRY_SECONDS = 30.0


def shares_stream(model: int, other: int) -> bool:
    """Return whether the logs of two models are in one stream, so that one batch can write both."""
    return model % _LOGS == other % _LOGS


def log_location(model: int) -> tuple[str, str]:
    """Return (stream, subject) of a model's log."""
    return f"WOLFSTREAM_LOG_{model % _LOGS}", f"wolfstream.log.{model % _LOGS}.{model}"


def states_subject(model: int, *rest: object) -> str:
    """Return a subject of the stream STATES for a model."""
    return ".".join(["wolfstream.states", str(model), *map(str, rest)])


def make_streams(nats: NatsConnection, log_bytes: int, state_bytes: int) -> None:
    """Create the missing streams and buckets, with three copies of each if there is a cluster.

    Existing streams are not changed.

    Args:
        nats: the connection.
        log_bytes: bound on all logs together, divided equally among their streams.
        state_bytes: bound on snapshots and pinned states.

    Raises StartupError.
    """
    version = nats.client.connected_server_version
    if (version.major, version.minor) < _OLDEST_SERVER:
        raise StartupError(
            f"the NATS servers at {nats.servers} are of version {version}; a fleet needs 2.12 "
            "or newer, which store a large request as a whole"
        )
    nats.run(_make_all(nats, log_bytes, state_bytes), 4 * _RETRY_SECONDS)


async def _make_all(nats: NatsConnection, log_bytes: int, state_bytes: int) -> None:
    copies = list[int]()
    for name, subject, n_bytes in _wanted(log_bytes, state_bytes):
        limits = {"max_bytes": n_bytes, "max_msgs_per_subject": -1}
        copies.append(await _make_stream(nats, name, subject, limits))
    for bucket in (MODELS_BUCKET, KEYS_BUCKET):
        copies.append(await make_bucket(nats, bucket))
    if min(copies) < _REPLICAS:
        logger.warning(
            "NATS keeps too few copies of each stream, so the loss of a disk loses data: "
            "copies=%d. A cluster of three servers keeps three",
            min(copies),
        )


def grow_streams(nats: NatsConnection, log_bytes: int, state_bytes: int) -> None:
    """Raise the bounds of existing streams to those of `make_streams`; a failure is logged.

    Bounds are never lowered, except one that another replica has left raised (`more_room`).
    """
    for name, _, n_bytes in _wanted(log_bytes, state_bytes):
        try:
            config = nats.run(nats.call(f"STREAM.INFO.{name}", {}), _RETRY_SECONDS)["config"]
            bound = max(n_bytes, configured_bytes(config))
            if 0 <= config["max_bytes"] != bound:
                changed = with_bound(config, bound)
                nats.run(nats.call(f"STREAM.UPDATE.{name}", changed), _RETRY_SECONDS)
                logger.info("stream has a new bound: stream=%s bytes=%d", name, bound)
        except (NatsRefusal, NatsTimeout) as error:
            logger.warning("stream keeps its bound: stream=%s error=%s", name, error)


async def make_bucket(nats: NatsConnection, bucket: str) -> int:
    """Create a bucket if it is missing; return its number of copies. Raises StartupError."""
    return await _make_stream(nats, f"KV_{bucket}", f"$KV.{bucket}.>", _BUCKET)


# The configuration that NATS clients give to buckets.
_BUCKET = {"max_bytes": -1, "max_msgs_per_subject": 1, "allow_rollup_hdrs": True}


def _wanted(log_bytes: int, state_bytes: int) -> Iterator[tuple[str, str, int]]:
    """Yield (name, subject, bound in bytes) of each stream."""
    for log in range(_LOGS):
        yield f"WOLFSTREAM_LOG_{log}", f"wolfstream.log.{log}.*", log_bytes // _LOGS
    yield STATES, "wolfstream.states.>", state_bytes


async def _make_stream(
    nats: NatsConnection, name: str, subject: str, limits: dict[str, Any]
) -> int:
    """Create a stream if it is missing; return its number of copies. Raises StartupError."""
    wanted = {
        "name": name,
        "subjects": [subject],
        "storage": "file",
        "retention": "limits",
        "discard": "new",
        "num_replicas": _REPLICAS,
        "allow_direct": True,
        "allow_atomic": True,
        "max_consumers": -1,
        "max_msgs": -1,
        "max_msg_size": -1,
        **limits,
    }
    deadline = time.monotonic() + _RETRY_SECONDS
    while True:
        try:
            info = await nats.call(f"STREAM.INFO.{name}", {})
            # A stream that was just created cannot be read on all servers yet.
            await nats.get(name, {"seq": 1})
            return int(info["config"]["num_replicas"])
        except NatsForbidden as error:
            raise StartupError(f"the stream {name} cannot be used: {error}") from None
        except (NatsRefusal, NatsTimeout):
            wanted = await _try_to_create(nats, wanted, deadline)


async def _try_to_create(
    nats: NatsConnection, wanted: dict[str, Any], deadline: float
) -> dict[str, Any]:
    """Try to create a stream; return the configuration for the next attempt.

    Raises StartupError for an error that is final, and for any after the deadline.
    """
    try:
        await nats.call(f"STREAM.CREATE.{wanted['name']}", wanted)
    except (NatsRefusal, NatsTimeout) as error:
        if isinstance(error, NatsRefusal) and error.code == _NOT_CLUSTERED:
            return {**wanted, "num_replicas": 1}
        no_room = isinstance(error, NatsRefusal) and error.code == NO_ROOM
        if isinstance(error, NatsForbidden):
            raise StartupError(f"the stream {wanted['name']} cannot be made: {error}") from None
        if no_room or time.monotonic() > deadline:
            remedy = (
                "give them more room, or lower WOLFSTREAM_FLEET_LOG_BYTES and "
                "WOLFSTREAM_FLEET_STATE_BYTES"
                if no_room
                else "enable JetStream for the servers and for this user's account"
                if any(code in str(error) for code in _WITHOUT_JETSTREAM)
                else "a fleet needs one server, or three that know each other"
            )
            raise StartupError(
                f"the stream {wanted['name']} cannot be made at {nats.servers}: {error}; {remedy}"
            ) from None
        await asyncio.sleep(0.5)
    return wanted
