"""Messages that a stream stores together: all of them or none."""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

from wolfstream.service.fleet.connection import NatsConnection, NotConnected

EXPECTED = "Nats-Expected-Last-Subject-Sequence"
# How long an answer is waited for; the messages of a batch are on their way by then.
_ANSWER_SECONDS, _MESSAGES_A_SECOND = 2.0, 10
_NAME_BYTES = 12


class Message(NamedTuple):
    """A message of a subject.

    expected: the sequence of the last message of the subject; None if one of the batch is.
    """

    subject: str
    body: bytes
    expected: int | None


async def send(nats: NatsConnection, messages: Sequence[Message]) -> int:
    """Store messages of one stream, one after another; return the sequence of the last one.

    A server refuses all of them if the last message of a subject is not the expected one. Raises
    Refused, Unanswered, NotConnected.
    """
    last = messages[-1]
    if len(messages) == 1:
        answer = await nats.ask(last.subject, last.body, _expectation(last), _ANSWER_SECONDS)
        return int(answer["seq"])
    if not nats.connected:
        raise NotConnected(f"no NATS server is connected at {nats.servers}")
    batch = secrets.token_hex(_NAME_BYTES)
    for number, message in enumerate(messages[:-1], 1):
        headers = _place(batch, number) | _expectation(message)
        await nats.client.publish(message.subject, message.body, headers=headers)
    headers = _place(batch, len(messages)) | _expectation(last) | {"Nats-Batch-Commit": "1"}
    # A batch without its end is not stored.
    seconds = _ANSWER_SECONDS + len(messages) / _MESSAGES_A_SECOND
    answer = await nats.ask(last.subject, last.body, headers, seconds)
    return int(answer["seq"])


def _place(batch: str, number: int) -> dict[str, str]:
    return {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}


def _expectation(message: Message) -> dict[str, str]:
    return {} if message.expected is None else {EXPECTED: str(message.expected)}
