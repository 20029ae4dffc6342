"""What one nats-server does, without a network: packets come in, answers and pushes go out."""

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.service.jetstream import errors
from tests.service.jetstream.atomic_batches import BATCH_ID, AtomicBatches
from tests.service.jetstream.consumer import Consumer
from tests.service.jetstream.errors import ApiRefusal
from tests.service.jetstream.packet import Packet, decoded, encoded
from tests.service.jetstream.reads import read_of_copy, read_of_leader, timestamp
from tests.service.jetstream.store import Store
from tests.service.jetstream.stream import Stream
from tests.service.jetstream.subjects import collide, matches

VERSION = "2.15.1"
_API, _DIRECT = "$JS.API.", "$JS.API.DIRECT.GET."
_SUBJECTS_AT_ONCE = 100_000
# The first time that a server without a clock tells, and how long it is until the next one.
_BEGIN, _TICK = 1_767_225_600_000_000_000, 1_000_000
_NEVER = "0001-01-01T00:00:00Z"
_RESPONSE_TYPES = "io.nats.jetstream.api.v1."
_DEFAULTS: dict[str, Any] = {
    "subjects": [],
    "retention": "limits",
    "max_consumers": -1,
    "max_msgs": -1,
    "max_bytes": -1,
    "max_age": 0,
    "max_msgs_per_subject": -1,
    "max_msg_size": -1,
    "discard": "old",
    "storage": "file",
    "num_replicas": 1,
    "duplicate_window": 120_000_000_000,
    "compression": "none",
    "allow_direct": False,
    "mirror_direct": False,
    "sealed": False,
    "deny_delete": False,
    "deny_purge": False,
    "allow_rollup_hdrs": False,
    "consumer_limits": {},
    "allow_msg_ttl": False,
    "allow_atomic": False,
}
# What answers have beside an error.
_WITH_ERRORS: dict[str, dict[str, Any]] = {
    "stream_info": {"total": 0, "offset": 0, "limit": 0},
    "stream_purge": {"purged": 0},
}
# The levels of JetStream's interface that a server has, and that batches need.
_LEVEL, _BATCH_LEVEL = "5", "2"


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
        self.n_servers, self.max_payload = n_servers, 1 << 20
        self.streams: dict[str, Stream] = {}
        self.batches: dict[str, AtomicBatches] = {}  # stream -> its unfinished batches
        self.clock = clock or itertools.count(_BEGIN, _TICK).__next__
        self._store_bytes = store_bytes
        self._subscriptions: dict[tuple[str, int], str] = {}  # client, number -> pattern
        self._consumers: dict[str, Consumer] = {}
        self._names = itertools.count(1)

    def subscribe(self, client: str, number: int, pattern: str) -> list[Push]:
        """Note a subscription; return what waits for it."""
        self._subscriptions[client, number] = pattern
        return list(self._pump())

    def unsubscribe(self, client: str, number: int) -> None:
        """Forget a subscription, and the consumer that delivers to it."""
        pattern = self._subscriptions.pop((client, number), "")
        for consumer in [one for one in self._consumers.values() if one.subject == pattern]:
            del self._consumers[consumer.name]

    def disconnect(self, client: str) -> None:
        """Forget the subscriptions of a client that may come back; its consumers wait for it."""
        for key in [key for key in self._subscriptions if key[0] == client]:
            del self._subscriptions[key]

    def has_consumer(self, name: str) -> bool:
        """Return whether a consumer is still there."""
        return name in self._consumers

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
        for batches in self.batches.values():
            batches.abandon()

    def _no_responders(self, packet: Packet) -> Packet:
        return Packet(packet.reply, "", encoded({"Nats-Subject": packet.subject}, "503"))

    def _subscribed(self, packet: Packet, subject: str) -> Iterator[Push]:
        for (client, number), pattern in self._subscriptions.items():
            if matches(pattern, subject):
                yield Push(client, number, packet)

    def _pump(self) -> Iterator[Push]:
        """Hand out what waits for consumers that somebody subscribes to."""
        for consumer in self._consumers.values():
            key = next((k for k, of in self._subscriptions.items() if of == consumer.subject), None)
            while key is not None and (packet := consumer.take()) is not None:
                yield Push(*key, packet)

    def _append(self, stream: Stream, packet: Packet) -> list[Packet]:
        headers = decoded(packet.headers)
        try:
            if BATCH_ID in headers:
                stored = self.batches[stream.name].take(packet, headers)
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

    def _call(self, packet: Packet) -> Outcome:
        """Answer a call of JetStream's interface."""
        words = packet.subject.removeprefix(_API).split(".")
        n_words = 3 if words[:2] == ["STREAM", "MSG"] else 2
        kind, (name, *rest) = "_".join(words[:n_words]).lower(), [*words[n_words:], ""]
        request = json.loads(packet.body) if packet.body else {}
        created: Consumer | None = None
        pushes = list[Push]()
        try:
            if kind == "consumer_create":
                created = self._create_consumer(name, request)
                content = self._info_of_consumer(created)
                pushes = list(self._pump())
            elif kind.startswith("consumer"):
                content = self._call_consumer(kind, name, rest[0])
            else:
                content = self._call_stream(kind, name, request)
        except ApiRefusal as refusal:
            content = {"error": refusal.error.content, **_WITH_ERRORS.get(kind, {})}
        answer = {"type": f"{_RESPONSE_TYPES}{kind}_response"} | content
        return Outcome([_json(packet.reply, answer)] if packet.reply else [], pushes, created)

    def _call_stream(self, kind: str, name: str, request: dict[str, Any]) -> dict[str, Any]:
        if kind == "stream_create":
            return self._create(name, request)
        if kind == "stream_names":
            names = sorted(self.streams)
            return {"total": len(names), "offset": 0, "limit": 1024, "streams": names}
        if kind == "stream_purge" and request.get("seq") and request.get("keep"):
            raise ApiRefusal(errors.BAD_REQUEST)
        if kind == "stream_msg_get" and not request:
            raise ApiRefusal(errors.BAD_REQUEST)
        stream = self.streams.get(name)
        if stream is None:
            raise ApiRefusal(errors.STREAM_NOT_FOUND)
        if kind == "stream_update":
            return self._update(stream, request)
        if kind == "stream_info":
            return self._info(stream, request)
        if kind == "stream_purge":
            before, keep = int(request.get("seq") or 0), int(request.get("keep") or 0)
            purged = stream.purge(str(request.get("filter") or ""), before, keep)
            return {"success": True, "purged": purged}
        if kind == "stream_msg_get":
            return read_of_leader(stream.store, request)
        if kind == "stream_msg_delete":
            stream.delete(int(request["seq"]))
            return {"success": True}
        if kind == "stream_delete":
            self._delete(name)
            return {"success": True}
        raise NotImplementedError(f"the stand-in does not model the call {kind}")

    def _create(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("name") != name:
            raise ApiRefusal(errors.NAME_MISMATCH)
        config = _completed(request)
        self._check_copies(config)
        stream = self.streams.get(name)
        if stream is not None and stream.config != config:
            raise ApiRefusal(errors.NAME_IN_USE)
        if stream is None:
            self._check_config(config)
            stream = self.streams[name] = Stream(config, self.clock(), self.clock)
            self.batches[name] = AtomicBatches(stream)
        return self._about(stream) | {"did_create": True}

    def _update(self, stream: Stream, request: dict[str, Any]) -> dict[str, Any]:
        config = _completed(request)
        self._check_copies(config)
        self._check_config(config)
        stream.config = config
        return self._about(stream)

    def _check_copies(self, config: dict[str, Any]) -> None:
        if config["num_replicas"] > self.n_servers:
            raise ApiRefusal(errors.NOT_CLUSTERED)

    def _check_config(self, config: dict[str, Any]) -> None:
        others = [one.config for name, one in self.streams.items() if name != config["name"]]
        theirs = [subject for one in others for subject in one["subjects"]]
        if any(collide(own, other) for own in config["subjects"] for other in theirs):
            raise ApiRefusal(errors.SUBJECTS_OVERLAP)
        bounds = sum(max(one["max_bytes"], 0) for one in [config, *others])
        if self._store_bytes is not None and bounds > self._store_bytes:
            raise ApiRefusal(errors.NO_STORAGE)

    def _delete(self, name: str) -> None:
        del self.streams[name], self.batches[name]
        for consumer in [one for one in self._consumers.values() if one.stream.name == name]:
            del self._consumers[consumer.name]

    def _about(self, stream: Stream) -> dict[str, Any]:
        """Return settings and state of a stream."""
        store = stream.store
        state: dict[str, Any] = {
            "messages": len(store),
            "bytes": store.n_bytes,
            "first_seq": store.first,
            "first_ts": timestamp(next(iter(store)).time) if len(store) else _NEVER,
            "last_seq": store.last,
            "last_ts": timestamp(store.last_time) if store.last_time else _NEVER,
            "consumer_count": sum(one.stream is stream for one in self._consumers.values()),
        }
        if subjects := store.subjects():
            state["num_subjects"] = len(subjects)
        if len(store) and (deleted := store.last - store.first + 1 - len(store)):
            state["num_deleted"] = deleted
        return {"config": stream.config, "created": timestamp(stream.created), "state": state}

    def _info(self, stream: Stream, request: dict[str, Any]) -> dict[str, Any]:
        answer, wanted = self._about(stream), request.get("subjects_filter")
        found = stream.store.subjects(wanted) if wanted else {}
        if found:
            answer["state"]["subjects"] = found
        return {
            "total": len(found),
            "offset": 0,
            "limit": _SUBJECTS_AT_ONCE if found else 0,
            **answer,
            "cluster": {"leader": "n0"},
            "ts": timestamp(self.clock()),
        }

    def _create_consumer(self, stream: str, request: dict[str, Any]) -> Consumer:
        if stream not in self.streams:
            raise ApiRefusal(errors.STREAM_NOT_FOUND)
        name = request["config"].get("name") or f"consumer{next(self._names)}"
        consumer = Consumer(name, self.streams[stream], request["config"], self.clock())
        self._consumers[name] = consumer
        return consumer

    def _call_consumer(self, kind: str, stream: str, name: str) -> dict[str, Any]:
        consumer = self._consumers.get(name)
        if consumer is None or consumer.stream.name != stream:
            raise ApiRefusal(errors.CONSUMER_NOT_FOUND)
        if kind == "consumer_info":
            return self._info_of_consumer(consumer)
        if kind == "consumer_delete":
            del self._consumers[name]
            return {"success": True}
        raise NotImplementedError(f"the stand-in does not model the call {kind}")

    def _info_of_consumer(self, consumer: Consumer) -> dict[str, Any]:
        delivered = {
            "consumer_seq": consumer.delivered,
            "stream_seq": consumer.delivered_sequence,
        }
        return {
            "stream_name": consumer.stream.name,
            "name": consumer.name,
            "created": timestamp(consumer.created),
            "config": consumer.config,
            "delivered": delivered,
            "ack_floor": delivered,
            "num_ack_pending": 0,
            "num_redelivered": 0,
            "num_waiting": 0,
            "num_pending": consumer.n_pending,
            "push_bound": consumer.subject in self._subscriptions.values(),
            "ts": timestamp(self.clock()),
        }


def _completed(request: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a stream with defaults in the place of what is missing."""
    given = {name: value for name, value in request.items() if value is not None}
    if not given.get("subjects"):
        given["subjects"] = [given["name"]]
    for bound in ("max_consumers", "max_msgs", "max_bytes", "max_msgs_per_subject", "max_msg_size"):
        given[bound] = given.get(bound) or -1
    metadata = {
        **(given.get("metadata") or {}),
        "_nats.level": _LEVEL,
        "_nats.req.level": _BATCH_LEVEL if given.get("allow_atomic") else "0",
        "_nats.ver": VERSION,
    }
    return {"name": given["name"], **_DEFAULTS, **given, "metadata": metadata}


def _json(reply: str, content: dict[str, Any]) -> Packet:
    return Packet(reply, "", b"", json.dumps(content).encode())
