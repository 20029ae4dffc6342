"""What one nats-server does, without a network: packets come in, answers and pushes go out."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tests.service.jetstream import errors
from tests.service.jetstream.atomic_batches import BATCH_ID
from tests.service.jetstream.calls import Calls
from tests.service.jetstream.consumer import Consumer
from tests.service.jetstream.errors import ApiRefusal
from tests.service.jetstream.packet import Packet, decoded, encoded
from tests.service.jetstream.reads import read_of_copy
from tests.service.jetstream.store import Store
from tests.service.jetstream.stream import Stream
from tests.service.jetstream.subjects import matches

_API, _DIRECT = "$JS.API.", "$JS.API.DIRECT.GET."
# The first time that a server without a clock tells, and how long it is until the next one.
_BEGIN, _TICK = 1_767_225_600_000_000_000, 1_000_000
_RESPONSE_TYPES = "io.nats.jetstream.api.v1."


class Push(NamedTuple):
    """A packet for one subscription of a client."""

    client: str
    subscription: int
    packet: Packet


class Outcome(NamedTuple):
    """What follows from a packet.

    answers: to the client that has sent it.
    pushes: to subscriptions, in this order.
    created: the consumer that was created.
    """

    answers: list[Packet]
    pushes: list[Push]
    created: Consumer | None = None


class Server:
    """A server, or a cluster whose servers agree. It is not safe for use by several threads.

    n_servers: how many copies of a stream there may be; one, or three and more.
    store_bytes: how much the bounds of all streams may add up to; None for any amount.
    clock: returns nanoseconds since 1970; without it, a millisecond passes at each look.
    """

    def __init__(
        self,
        n_servers: int = 1,
        store_bytes: int | None = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self.max_payload = 1 << 20
        clock = clock or itertools.count(_BEGIN, _TICK).__next__
        self._calls = Calls(n_servers, store_bytes, clock)
        self._subscriptions: dict[tuple[str, int], str] = {}  # client, number -> pattern

    @property
    def streams(self) -> Mapping[str, Stream]:
        """Return all streams, by name."""
        return self._calls.streams

    def subscribe(self, client: str, number: int, pattern: str) -> list[Push]:
        """Note a subscription; return what waits for it."""
        self._subscriptions[client, number] = pattern
        return list(self._pump())

    def unsubscribe(self, client: str, number: int) -> None:
        """Forget a subscription, and the consumer that delivers to it."""
        pattern = self._subscriptions.pop((client, number), "")
        for consumer in [one for one in self._calls.consumers.values() if one.subject == pattern]:
            del self._calls.consumers[consumer.name]

    def disconnect(self, client: str) -> None:
        """Forget the subscriptions of a client that may come back; its consumers wait for it."""
        for key in [key for key in self._subscriptions if key[0] == client]:
            del self._subscriptions[key]

    def has_consumer(self, name: str) -> bool:
        """Return whether a consumer is still there."""
        return name in self._calls.consumers

    def heartbeat(self, consumer: Consumer) -> list[Push]:
        """Return the heartbeat of a consumer."""
        return list(self._subscribed(consumer.heartbeat(), consumer.subject))

    def publish(self, packet: Packet, behind: int | None = 0) -> Outcome:
        """Take a packet.

        behind: how many changes the copy lacks that answers a read; None if it has nothing.
        """
        if packet.subject.startswith(_DIRECT):
            return Outcome(list(self._direct(packet, behind)), [])
        if packet.subject.startswith(_API):
            return self._call(packet)
        stream = next((one for one in self.streams.values() if one.takes(packet.subject)), None)
        pushes = list(self._subscribed(packet, packet.subject))
        if stream is None:
            unserved = packet.reply and not pushes
            return Outcome([self._no_responders(packet)] if unserved else [], pushes)
        answers = self._append(stream, packet)
        return Outcome(answers if packet.reply else [], [*pushes, *self._pump()])

    def refusal(self, packet: Packet, code: int, status: int, description: str) -> list[Packet]:
        """Return the answer that refuses a packet, without a look at it."""
        content = errors.ApiError(status, code, description).content
        return [_json(packet.reply, {"error": content, "stream": "", "seq": 0})]

    def unserved(self, packet: Packet) -> list[Packet]:
        """Return the answer where no server responds."""
        return [self._no_responders(packet)]

    def abandon_batches(self) -> None:
        """Forget all unfinished batches, as a server does after ten seconds without a message."""
        for batches in self._calls.batches.values():
            batches.abandon()

    def _no_responders(self, packet: Packet) -> Packet:
        return Packet(packet.reply, "", encoded({"Nats-Subject": packet.subject}, "503"))

    def _subscribed(self, packet: Packet, subject: str) -> Iterator[Push]:
        for (client, number), pattern in self._subscriptions.items():
            if matches(pattern, subject):
                yield Push(client, number, packet)

    def _pump(self) -> Iterator[Push]:
        """Hand out what waits for consumers that somebody subscribes to."""
        for consumer in self._calls.consumers.values():
            key = next((k for k, of in self._subscriptions.items() if of == consumer.subject), None)
            while key is not None and (packet := consumer.take()) is not None:
                yield Push(*key, packet)

    def _call(self, packet: Packet) -> Outcome:
        """Answer a call of JetStream's interface."""
        words = packet.subject.removeprefix(_API).split(".")
        n_words = 3 if words[:2] == ["STREAM", "MSG"] else 2
        kind, names = "_".join(words[:n_words]).lower(), words[n_words:]
        request = json.loads(packet.body) if packet.body else {}
        before = set(self._calls.consumers)
        content = self._calls.answer(kind, names, request)
        created = [of for name, of in self._calls.consumers.items() if name not in before]
        answer = {"type": f"{_RESPONSE_TYPES}{kind}_response"} | content
        answers = [_json(packet.reply, answer)] if packet.reply else []
        return Outcome(answers, list(self._pump()), created[0] if created else None)

    def _append(self, stream: Stream, packet: Packet) -> list[Packet]:
        headers = decoded(packet.headers)
        try:
            if BATCH_ID in headers:
                stored = self._calls.batches[stream.name].take(packet, headers)
                if stored is None:
                    return [Packet(packet.reply)]
                answer = {"stream": stream.name, "seq": stored[0], "batch": headers[BATCH_ID]}
                return [_json(packet.reply, answer | {"count": stored[1]})]
            sequence, known = stream.append(packet)
        except ApiRefusal as refusal:
            content = {"error": refusal.error.content, "stream": stream.name, "seq": 0}
            return [_json(packet.reply, content)]
        duplicate = {"duplicate": True} if known else {}
        return [_json(packet.reply, {"stream": stream.name, "seq": sequence} | duplicate)]

    def _direct(self, packet: Packet, behind: int | None) -> Iterator[Packet]:
        name, _, subject = packet.subject.removeprefix(_DIRECT).partition(".")
        stream = self.streams.get(name)
        if stream is None or not stream.config["allow_direct"]:
            yield self._no_responders(packet)
            return
        store: Store = stream.store if behind == 0 else stream.copy_behind(behind)
        request = {"last_by_subj": subject} if subject else json.loads(packet.body or b"{}")
        yield from read_of_copy(name, store, request, packet.reply)


def _json(reply: str, content: Mapping[str, Any]) -> Packet:
    return Packet(reply, "", b"", json.dumps(content).encode())
