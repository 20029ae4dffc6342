"""Stores commits at the ends of chains of one stream: all of them exactly once, or none ever.

They are sent, with the last message that the writer knows, until a server responds. A server
refuses them if another message has been stored since. The message in their place then shows what
happened:

- It is the commit itself: the commit was stored, and only the response was lost.
- It names the same predecessor: it took the place, and the commit will never be stored.
- It names another predecessor, which was purged: this may have been the commit, and nothing can
  prove it.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

from wolfstream.service.errors import InDoubt, StorageFailed
from wolfstream.service.fleet.batches import Message, send
from wolfstream.service.fleet.commit_messages import LogRow
from wolfstream.service.fleet.connection import (
    LOG_FULL,
    NatsConnection,
    NatsDisconnected,
    NatsRefusal,
    NatsTimeout,
)
from wolfstream.service.fleet.streams import more_room
from wolfstream.service.fleet.subject_messages import SubjectMessages
from wolfstream.service.storage.journal import LogFull

# JetStream's error codes for a last message that is not the expected one. Rarely, the second occurs
# although it is the expected one.
_WRONG_LAST_MESSAGE = frozenset({10071, 10164})
# The pause between two attempts doubles up to a bound.
_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.01, 0.2
# Kinds of rows that even a full log has to take: without them it could not be led or purged.
_ESSENTIAL = frozenset(
    {
        *("checkpoint", "created", "epoch", "rollback", "answer", "shorter"),
        *("purged", "forgotten", "unpinned", "deleted"),
    }
)


class PlannedCommit(NamedTuple):
    """A commit to be stored at the end of a chain."""

    messages: SubjectMessages  # of the chain
    last: int  # the message that it follows
    commit: bytes  # its unique name
    rows: list[LogRow]
    bodies: list[bytes]  # of its messages


class PlaceTaken(Exception):
    """Another commit has taken the place of a planned one, which will never be stored.

    Attributes:
        number: index of the planned commit among those to be stored.
        commit: name of the other commit.
        first: first message of the other commit.
        last: last message of the other commit.
    """

    def __init__(self, number: int, commit: bytes, first: int, last: int) -> None:
        super().__init__()
        self.number, self.commit, self.first, self.last = number, commit, first, last


class EvidencePurged(InDoubt):
    """The messages were purged that would prove whether a commit was stored: nobody will know."""


async def store(
    nats: NatsConnection, planned: Sequence[PlannedCommit], seconds: float, *, sent: bool = False
) -> int:
    """Store commits of several chains of one stream; return the first message.

    Args:
        nats: the connection.
        planned: the commits.
        seconds: how long to retry while no server responds.
        sent: whether commits with these predecessors were sent before, and may have been stored.

    Raises StorageFailed if nothing was stored, PlaceTaken, EvidencePurged, and InDoubt if the
    outcome is still unknown after `seconds`.
    """
    deadline, pause = time.monotonic() + seconds, _PAUSE_SECONDS
    log = planned[0].messages.name
    while True:
        try:
            return await _send_or_find(nats, planned, sent_before=sent)
        except NatsDisconnected as error:
            if not sent:
                raise StorageFailed(f"{error}; nothing was learned") from None
            problem = str(error)
        except NatsTimeout as error:
            sent, problem = True, str(error)
        except NatsRefusal as error:
            if not sent:  # otherwise an earlier attempt may still be stored
                raise _refusal(log, error) from None
            problem = str(error)
        if time.monotonic() > deadline:
            raise InDoubt(f"the {log} has not answered: {problem}")
        await asyncio.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)


def _refusal(log: str, error: NatsRefusal) -> StorageFailed:
    if error.code == LOG_FULL:
        return LogFull(
            f"the {log} is full; nothing was learned. A snapshot that is made now may "
            "make room: try again. Otherwise delete unused models, or restart a replica "
            "with a higher WOLFSTREAM_FLEET_LOG_BYTES"
        )
    return StorageFailed(f"the {log} could not be written: {error}; nothing was learned")


async def _send_or_find(
    nats: NatsConnection, planned: Sequence[PlannedCommit], *, sent_before: bool
) -> int:
    """Send commits, or find them if they were stored before; return the first message.

    Args:
        nats: the connection.
        planned: the commits.
        sent_before: whether they may have been stored without a response.

    Raises NatsRefusal, NatsTimeout, PlaceTaken, EvidencePurged.
    """
    n_messages = sum(len(commit.bodies) for commit in planned)
    try:
        return await _send(nats, planned) - n_messages + 1
    except NatsRefusal as error:
        if error.code not in _WRONG_LAST_MESSAGE:
            raise
        refusal = str(error)
    firsts = [await _find(number, commit, sent_before) for number, commit in enumerate(planned)]
    if firsts[0] is None:
        raise NatsTimeout(refusal)
    return firsts[0]


async def _find(number: int, planned: PlannedCommit, sent_before: bool) -> int | None:
    """Return the first message of a commit that was stored; None if this copy does not have it.

    Raises NatsTimeout, PlaceTaken if another commit is in its place, and EvidencePurged.
    """
    successor = await planned.messages.next_after(planned.last)
    if successor is None:
        return None
    fragment, first = successor
    if fragment.commit != planned.commit:
        if sent_before and fragment.previous != planned.last:
            raise EvidencePurged(
                f"the {planned.messages.name} goes on at message {first}, after others that were "
                "purged; the commit may have been one of them"
            )
        raise PlaceTaken(number, fragment.commit, first, first + fragment.n_fragments - 1)
    return first


async def _send(nats: NatsConnection, planned: Sequence[PlannedCommit]) -> int:
    """Send commits; return the last message. Raises NatsRefusal, NatsTimeout."""
    messages = [
        Message(commit.messages.subject, body, None if number else commit.last)
        for commit in planned
        for number, body in enumerate(commit.bodies)
    ]
    try:
        return await send(nats, messages)
    except NatsRefusal as error:
        if error.code != LOG_FULL or not all(_is_essential(commit.rows) for commit in planned):
            raise
    n_bytes = sum(len(message.body) for message in messages)
    async with more_room(nats, planned[0].messages.stream, n_bytes):
        return await send(nats, messages)


def _is_essential(rows: Sequence[LogRow]) -> bool:
    """Return whether even a full log has to take a commit; one without rows resolves a doubt."""
    return all(row.kind in _ESSENTIAL for row in rows)
