"""Commits at the ends of chains of one stream: all of them are stored, once, or none ever is.

They are sent at the ends that their writers know of until a server has answered. A server refuses
them where another message has come since. Then the message in their place says what became of
them: it is the commit itself, which was stored although nobody heard so, or it names the same end
as the message before it, and the commit never will be stored. If what is there comes after another
message, which was purged, the commit may have been that one: nothing is proven.
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
    NotConnected,
    Refused,
    Unanswered,
)
from wolfstream.service.fleet.reserve import more_room
from wolfstream.service.fleet.subject_messages import SubjectMessages
from wolfstream.service.storage.journal import LogFull

# The codes for another end; the second also comes, rarely, where the end is the expected one.
_ANOTHER_END = frozenset({10071, 10164})
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.01, 0.2
# Rows of commits that a full log takes: without them it could not be led or purged.
_ESSENTIAL = frozenset(
    {
        *("checkpoint", "created", "epoch", "rollback", "answer", "shorter"),
        *("purged", "forgotten", "unpinned", "deleted"),
    }
)


class Planned(NamedTuple):
    """A commit that is to be written at the end of a chain.

    messages: of the chain's subject. last: that it comes after. commit: its name. bodies: of the
    messages that its rows become.
    """

    messages: SubjectMessages
    last: int
    commit: bytes
    rows: list[LogRow]
    bodies: list[bytes]


class Overtaken(Exception):
    """Another commit has taken the place of one to write, which never will be stored.

    Attributes:
        number: of that one among those that were to be written.
        commit: the name of the other one.
        first: the first message of the other one.
        last: the last message of the other one.
    """

    def __init__(self, number: int, commit: bytes, first: int, last: int) -> None:
        super().__init__()
        self.number, self.commit, self.first, self.last = number, commit, first, last


class Unproven(InDoubt):
    """What is in the place of a commit does not tell whether that was stored, and nothing will."""


async def store(
    nats: NatsConnection, planned: Sequence[Planned], seconds: float, *, sent: bool = False
) -> int:
    """Store commits of several chains of one stream; return the first message.

    Args:
        nats: the connection.
        planned: the commits.
        seconds: how long they are sent again.
        sent: whether something at their ends was sent before, and may have been stored.

    Raises StorageFailed, Overtaken, Unproven, and InDoubt where none of these is known in time.
    """
    deadline, pause = time.monotonic() + seconds, _PAUSE_SECONDS
    log = planned[0].messages.name
    while True:
        try:
            return await _send_or_find(nats, planned, sent_before=sent)
        except NotConnected as error:
            if not sent:
                raise StorageFailed(f"{error}; nothing was learned") from None
            problem = str(error)
        except Unanswered as error:
            sent, problem = True, str(error)
        except Refused as error:
            if not sent:  # else an earlier one may still be stored
                raise _refusal(log, error) from None
            problem = str(error)
        if time.monotonic() > deadline:
            raise InDoubt(f"the {log} has not answered: {problem}")
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def _refusal(log: str, error: Refused) -> StorageFailed:
    if error.code == LOG_FULL:
        return LogFull(
            f"the {log} is full; nothing was learned. A snapshot that is made now may "
            "make room: try again. Otherwise delete unused models, or start a replica "
            "again with a higher WOLFSTREAM_FLEET_LOG_BYTES"
        )
    return StorageFailed(f"the {log} could not be written: {error}; nothing was learned")


async def _send_or_find(
    nats: NatsConnection, planned: Sequence[Planned], *, sent_before: bool
) -> int:
    """Send commits, unless they are there; return the first message.

    Args:
        nats: the connection.
        planned: the commits.
        sent_before: whether they were sent without an answer, and may have been stored.

    Raises Refused, Unanswered, Overtaken, Unproven.
    """
    n_messages = sum(len(one.bodies) for one in planned)
    try:
        return await _send(nats, planned) - n_messages + 1
    except Refused as error:
        if error.code not in _ANOTHER_END:
            raise
        refusal = str(error)
    found = [await _find(number, one, sent_before) for number, one in enumerate(planned)]
    if found[0] is None:
        raise Unanswered(refusal)
    return found[0]


async def _find(number: int, planned: Planned, sent_before: bool) -> int | None:
    """Return the first message of a commit that may have been stored; None if it is not here.

    Raises Unanswered, Overtaken where another commit is in its place, and Unproven.
    """
    found = await planned.messages.next_after(planned.last)
    if found is None:  # in this copy of the stream
        return None
    part, first = found
    if part.commit != planned.commit:
        if sent_before and part.previous != planned.last:
            raise Unproven(
                f"the {planned.messages.name} goes on at message {first}, after others that were "
                "purged; the commit may have been one of them"
            )
        raise Overtaken(number, part.commit, first, first + part.parts - 1)
    return first


async def _send(nats: NatsConnection, planned: Sequence[Planned]) -> int:
    """Send commits; return the last message. Raises Refused, Unanswered."""
    messages = [
        Message(one.messages.subject, body, None if number else one.last)
        for one in planned
        for number, body in enumerate(one.bodies)
    ]
    try:
        return await send(nats, messages)
    except Refused as error:
        if error.code != LOG_FULL or not all(_is_essential(one.rows) for one in planned):
            raise
    n_bytes = sum(len(message.body) for message in messages)
    async with more_room(nats, planned[0].messages.stream, n_bytes):
        return await send(nats, messages)


def _is_essential(rows: Sequence[LogRow]) -> bool:
    """Whether a full log has to take a commit; that is one that ends a doubt, which is empty."""
    return all(row.kind in _ESSENTIAL for row in rows)
