"""The streams of a fleet: their names and subjects, and how they are made.

    WOLFSTREAM_LOG_0 ...    wolfstream.log.<stream>.<model>            the models' logs
    WOLFSTREAM_STATES       wolfstream.states.<model>.at.<sequence>    snapshots
                            wolfstream.states.<model>.pinned.<name>    what rollbacks went back to
                            wolfstream.states.<model>.parts.<id>.<n>   their bytes
                            wolfstream.states.<model>.answers          what the log no longer yields

Buckets: `wolfstream-models` and `wolfstream-keys`.
"""

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import Any

from wolfstream.service.errors import StartupError
from wolfstream.service.fleet.connection import (
    NO_ROOM,
    Forbidden,
    NatsConnection,
    Refused,
    Unanswered,
)
from wolfstream.service.fleet.reserve import bound_of, bounded

logger = logging.getLogger(__name__)

# Each stream costs its servers work even when nothing happens, and an append waits for others of
# its stream only where they come at the same moment.
_LOGS = 8
STATES = "WOLFSTREAM_STATES"
MODELS_BUCKET, KEYS_BUCKET = "wolfstream-models", "wolfstream-keys"
STREAMS = (*(f"WOLFSTREAM_LOG_{log}" for log in range(_LOGS)), STATES)
_REPLICAS = 3
_NOT_CLUSTERED = 10074
# Errors of servers, or accounts, that store nothing.
_WITHOUT_JETSTREAM = "10039", "10076"
_OLDEST_SERVER = (2, 12)
# Servers that have just been started need some seconds to find each other.
_PATIENCE_SECONDS = 30.0


def shares_stream(model: int, other: int) -> bool:
    """Return whether the logs of two models are in one stream, which can store both at once."""
    return model % _LOGS == other % _LOGS


def log_of(model: int) -> tuple[str, str]:
    """Return the stream and the subject of a model's log."""
    return f"WOLFSTREAM_LOG_{model % _LOGS}", f"wolfstream.log.{model % _LOGS}.{model}"


def states_of(model: int, *rest: object) -> str:
    """Return a subject for data of a model that is not in its log."""
    return ".".join(["wolfstream.states", str(model), *map(str, rest)])


def make_streams(nats: NatsConnection, log_bytes: int, state_bytes: int) -> None:
    """Make the streams that are missing, three copies of each where there are three servers.

    log_bytes: bound on all logs together, none of which takes more than its part. state_bytes: on
    the snapshots. Existing streams stay as they are. Raises StartupError.
    """
    version = nats.client.connected_server_version
    if (version.major, version.minor) < _OLDEST_SERVER:
        raise StartupError(
            f"the NATS servers at {nats.servers} are of version {version}; a fleet needs 2.12 "
            "or newer, which store a large request as a whole"
        )
    nats.run(_make_all(nats, log_bytes, state_bytes), 4 * _PATIENCE_SECONDS)


async def _make_all(nats: NatsConnection, log_bytes: int, state_bytes: int) -> None:
    copies = list[int]()
    for name, subject, n_bytes in _wanted(log_bytes, state_bytes):
        limits = {"max_bytes": n_bytes, "max_msgs_per_subject": -1}
        copies.append(await _make(nats, name, subject, limits))
    for bucket in (MODELS_BUCKET, KEYS_BUCKET):
        copies.append(await make_bucket(nats, bucket))
    if min(copies) < _REPLICAS:
        logger.warning(
            "NATS keeps %d copy of each stream: what its disk loses is lost. Three servers that "
            "are a cluster keep three",
            min(copies),
        )


def grow_streams(nats: NatsConnection, log_bytes: int, state_bytes: int) -> None:
    """Give existing streams more room, where more is asked for; see `make_streams`.

    They are never made smaller, but for what another replica has left raised (`reserve`). What does
    not work is logged.
    """
    for name, _, n_bytes in _wanted(log_bytes, state_bytes):
        try:
            config = nats.run(nats.call(f"STREAM.INFO.{name}", {}), _PATIENCE_SECONDS)["config"]
            bound = max(n_bytes, bound_of(config))
            if 0 <= config["max_bytes"] != bound:
                changed = bounded(config, bound)
                nats.run(nats.call(f"STREAM.UPDATE.{name}", changed), _PATIENCE_SECONDS)
                logger.info("the stream %s may have %d bytes from now on", name, bound)
        except (Refused, Unanswered) as error:
            logger.warning("the stream %s keeps its bound: %s", name, error)


async def make_bucket(nats: NatsConnection, bucket: str) -> int:
    """Make a bucket if it is missing; how many copies of it there are. Raises StartupError."""
    return await _make(nats, f"KV_{bucket}", f"$KV.{bucket}.>", _BUCKET)


# As those who use buckets make them.
_BUCKET = {"max_bytes": -1, "max_msgs_per_subject": 1, "allow_rollup_hdrs": True}


def _wanted(log_bytes: int, state_bytes: int) -> Iterator[tuple[str, str, int]]:
    for log in range(_LOGS):
        yield f"WOLFSTREAM_LOG_{log}", f"wolfstream.log.{log}.*", log_bytes // _LOGS
    yield STATES, "wolfstream.states.>", state_bytes


async def _make(nats: NatsConnection, name: str, subject: str, limits: dict[str, Any]) -> int:
    """Make a stream if it is missing; how many copies of it there are."""
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
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            found = await nats.call(f"STREAM.INFO.{name}", {})
            # One that was just made is not read yet by all servers.
            await nats.get(name, {"seq": 1})
            return int(found["config"]["num_replicas"])
        except Forbidden as error:
            raise StartupError(f"the stream {name} cannot be used: {error}") from None
        except (Refused, Unanswered):
            wanted = await _try_to_make(nats, wanted, deadline)


async def _try_to_make(
    nats: NatsConnection, wanted: dict[str, Any], deadline: float
) -> dict[str, Any]:
    """Make a stream unless another replica has; return its settings. Raises StartupError."""
    try:
        await nats.call(f"STREAM.CREATE.{wanted['name']}", wanted)
    except (Refused, Unanswered) as error:
        if isinstance(error, Refused) and error.code == _NOT_CLUSTERED:
            return {**wanted, "num_replicas": 1}
        no_room = isinstance(error, Refused) and error.code == NO_ROOM
        if isinstance(error, Forbidden):
            raise StartupError(f"the stream {wanted['name']} cannot be made: {error}") from None
        if no_room or time.monotonic() > deadline:
            cure = (
                "give them more room, or lower WOLFSTREAM_FLEET_LOG_BYTES and "
                "WOLFSTREAM_FLEET_STATE_BYTES"
                if no_room
                else "enable JetStream for the servers and for this user's account"
                if any(code in str(error) for code in _WITHOUT_JETSTREAM)
                else "a fleet needs one server, or three that know each other"
            )
            raise StartupError(
                f"the stream {wanted['name']} cannot be made at {nats.servers}: {error}; {cure}"
            ) from None
        await asyncio.sleep(0.5)
    return wanted
