"""Sends batches of messages, of which a stream stores all or none."""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

from wolfstream.service.fleet.connection import NatsConnection

EXPECTED = "Nats-Expected-Last-Subject-Sequence"
# How long to wait for the reply: some seconds, and more for each message of the batch.
_ANSWER_SECONDS, _MESSAGES_A_SECOND = 2.0, 10
_NAME_BYTES = 12


class Message(NamedTuple):
    """A message to store."""

    subject: str
    body: bytes
    # Sequence of the subject's last message before this one; None if that is in the same batch.
    expected: int | None


async def send(nats: NatsConnection, messages: Sequence[Message]) -> int:
    """Store messages of one stream, all or none; return the sequence of the last one.

    They are refused if the last message of a subject is not the expected one. Raises NatsRefusal,
    NatsTimeout, NatsDisconnected.
    """
    last = messages[-1]
    if len(messages) == 1:
        reply = await nats.ask(last.subject, last.body, _expectation(last), _ANSWER_SECONDS)
        return int(reply["seq"])
    await nats.wait_until_connected()
    batch = secrets.token_hex(_NAME_BYTES)
    for number, message in enumerate(messages[:-1], 1):
        headers = _batch_position(batch, number) | _expectation(message)
        await nats.client.publish(message.subject, message.body, headers=headers)
    # The message with this header stores the batch; if an earlier one was lost, nothing is stored.
    commit = {"Nats-Batch-Commit": "1"}
    headers = _batch_position(batch, len(messages)) | _expectation(last) | commit
    seconds = _ANSWER_SECONDS + len(messages) / _MESSAGES_A_SECOND
    reply = await nats.ask(last.subject, last.body, headers, seconds)
    return int(reply["seq"])


def _batch_position(batch: str, number: int) -> dict[str, str]:
    return {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}


def _expectation(message: Message) -> dict[str, str]:
    return {} if message.expected is None else {EXPECTED: str(message.expected)}
