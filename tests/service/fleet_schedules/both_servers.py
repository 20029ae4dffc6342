"""A real server behind the stand-in: it gets the same packets, and its answers count.

The checker looks at what the stand-in has stored, which the answers and the end of a schedule
compare with what the real one has. Only the stand-in has consumers, copies that are behind, and
subscriptions.
"""

import json
from contextlib import suppress
from typing import Any

import nats.errors
from nats.aio.msg import Msg

from tests.service.jetstream.operations import timeless
from tests.service.jetstream.packet import Packet, decoded, encoded
from tests.service.jetstream.server import Outcome, Server
from wolfstream.service.fleet.connection import NatsConnection

_SECONDS = 10.0
_CALLS, _DIRECT, _CONSUMERS = "$JS.API.", "$JS.API.DIRECT.GET.", "$JS.API.CONSUMER."
# How many messages are compared with one read.
_AT_ONCE = 100
# What the headers of an answer have for its first line, and what differs.
_STATUS, _DESCRIPTION, _TIME = "Status", "Description", "Nats-Time-Stamp"
# Counted with those that only the stand-in has.
_UNEQUAL = "consumer_count"


class Unequal(AssertionError):
    """The two servers have told, or stored, different things."""


class BothServers(Server):
    """What one real server does, and the stand-in for it."""

    def __init__(self, nats: NatsConnection) -> None:
        """Begin without streams: those of the real server are deleted.

        Args:
            nats: a connection to the real server, which runs on a thread of its own.
        """
        super().__init__()
        self._nats = nats
        # The first difference: who sends a message that comes late does not hear of it.
        self._unequal: Unequal | None = None
        for name in self._ask("$JS.API.STREAM.NAMES").get("streams") or []:
            self._ask(f"$JS.API.STREAM.DELETE.{name}")

    def publish(self, packet: Packet, behind: int | None = 0) -> Outcome:
        """Let both take a packet; return what the real one answers. Raises Unequal."""
        outcome = super().publish(packet, behind)
        if not self._is_for_both(packet, behind):
            return outcome
        answers = self._nats.run(self._exchange(packet, len(outcome.answers)), 10 * _SECONDS)
        expected = [_content(one.headers, one.body) for one in outcome.answers]
        if [_content(one.headers, one.body) for one in answers] != expected:
            told = f"{packet} was answered with {answers}, not with {outcome.answers}"
            self._unequal = self._unequal or Unequal(told)
            raise self._unequal
        return outcome._replace(answers=answers)

    def check(self) -> None:
        """Compare all that both have stored. Raises Unequal, also for an answer before."""
        if self._unequal is not None:
            raise self._unequal
        for name, stream in self.streams.items():
            expected = [(one.sequence, one.subject, one.body) for one in stream.store]
            stored = list[tuple[int, str, bytes]]()
            request = {"batch": _AT_ONCE, "seq": 1}
            while found := self._nats.run(self._nats.get(name, request, _AT_ONCE), _SECONDS):
                stored += [(one.sequence, one.subject, one.body) for one in found]
                request["seq"] = stored[-1][0] + 1
            if stored != expected:
                raise Unequal(f"{name} has {stored}, not {expected}")

    def _is_for_both(self, packet: Packet, behind: int | None) -> bool:
        if packet.subject.startswith(_DIRECT):
            return behind == 0
        if packet.subject.startswith(_CALLS):
            return not packet.subject.startswith(_CONSUMERS)
        return any(stream.takes(packet.subject) for stream in self.streams.values())

    async def _exchange(self, packet: Packet, n_answers: int) -> list[Packet]:
        """Send a packet to the real server; return so many answers, or as many as come."""
        client = self._nats.client
        inbox = client.new_inbox() if packet.reply else ""
        subscription = await client.subscribe(inbox) if packet.reply else None
        await client.publish(packet.subject, packet.body, inbox, decoded(packet.headers) or None)
        if subscription is None:
            return []
        answers = list[Packet]()
        with suppress(nats.errors.TimeoutError):
            while len(answers) < n_answers:
                message = await subscription.next_msg(timeout=_SECONDS)
                answers.append(_packet(packet.reply, message))
        await subscription.unsubscribe()
        return answers

    def _ask(self, subject: str) -> dict[str, Any]:
        (answer,) = self._nats.run(self._exchange(Packet(subject, "reply"), 1), _SECONDS)
        content: dict[str, Any] = json.loads(answer.body)
        return content


def _packet(reply: str, message: Msg) -> Packet:
    """Return an answer as the stand-in has it."""
    headers = {str(getattr(key, "value", key)): of for key, of in (message.headers or {}).items()}
    status = [headers.pop(name) for name in (_STATUS, _DESCRIPTION) if name in headers]
    return Packet(reply, "", encoded(headers, " ".join(status)), message.data)


def _content(headers: bytes, body: bytes) -> tuple[bytes, dict[str, str], Any]:
    """Return what answers have in common that are equal."""
    fields = decoded(headers)
    fields.pop(_TIME, None)
    first = headers.partition(b"\r\n")[0]
    return first, fields, body if _TIME in decoded(headers) else _told(body)


def _told(body: bytes) -> Any:
    """Return the answer to a call without what may differ."""
    if not body:
        return None
    content = timeless(json.loads(body))
    content.get("state", {}).pop(_UNEQUAL, None)
    return content
