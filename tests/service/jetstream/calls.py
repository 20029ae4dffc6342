"""The calls of JetStream's interface, and what they make: streams and consumers."""

import itertools
from collections.abc import Callable
from typing import Any

from tests.service.jetstream import errors
from tests.service.jetstream.atomic_batches import AtomicBatches
from tests.service.jetstream.consumer import Consumer
from tests.service.jetstream.errors import ApiRefusal
from tests.service.jetstream.reads import read_of_leader, timestamp
from tests.service.jetstream.stream import Stream
from tests.service.jetstream.subjects import collide

VERSION = "2.15.1"
_SUBJECTS_AT_ONCE = 100_000
_NEVER = "0001-01-01T00:00:00Z"
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
}
# What answers have beside an error.
_WITH_ERRORS: dict[str, dict[str, Any]] = {
    "stream_info": {"total": 0, "offset": 0, "limit": 0},
    "stream_purge": {"purged": 0},
}
# The levels of JetStream's interface that a server has, and that batches need.
_LEVEL, _BATCH_LEVEL = "5", "2"


class Calls:
    """The streams and consumers of a server, and the calls that change or describe them.

    n_servers, store_bytes, clock: see `server.Server`.
    streams: by name.
    batches: the unfinished batches of each stream, by its name.
    consumers: by name.
    """

    def __init__(self, n_servers: int, store_bytes: int | None, clock: Callable[[], int]) -> None:
        self.streams: dict[str, Stream] = {}
        self.batches: dict[str, AtomicBatches] = {}
        self.consumers: dict[str, Consumer] = {}
        self._n_servers, self._store_bytes, self._clock = n_servers, store_bytes, clock
        self._names = itertools.count(1)

    def answer(self, kind: str, names: list[str], request: dict[str, Any]) -> dict[str, Any]:
        """Make a call; return the answer without its type.

        kind: such as stream_info.
        names: of the stream, and of the consumer if the call is about one.
        """
        name, *rest = [*names, ""]
        try:
            if kind == "consumer_create":
                return self._info_of_consumer(self._create_consumer(name, request))
            if kind.startswith("consumer"):
                return self._call_consumer(kind, name, rest[0])
            return self._call_stream(kind, name, request)
        except ApiRefusal as refusal:
            return {"error": refusal.error.content, **_WITH_ERRORS.get(kind, {})}

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
            stream = self.streams[name] = Stream(config, self._clock(), self._clock)
            self.batches[name] = AtomicBatches(stream)
        return self._about(stream) | {"did_create": True}

    def _update(self, stream: Stream, request: dict[str, Any]) -> dict[str, Any]:
        config = _completed(request)
        self._check_copies(config)
        self._check_config(config)
        stream.config = config
        return self._about(stream)

    def _check_copies(self, config: dict[str, Any]) -> None:
        if config["num_replicas"] > self._n_servers:
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
        for consumer in [one for one in self.consumers.values() if one.stream.name == name]:
            del self.consumers[consumer.name]

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
            "consumer_count": sum(one.stream is stream for one in self.consumers.values()),
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
            "ts": timestamp(self._clock()),
        }

    def _create_consumer(self, stream: str, request: dict[str, Any]) -> Consumer:
        if stream not in self.streams:
            raise ApiRefusal(errors.STREAM_NOT_FOUND)
        name = request["config"].get("name") or f"consumer{next(self._names)}"
        consumer = Consumer(name, self.streams[stream], request["config"], self._clock())
        self.consumers[name] = consumer
        return consumer

    def _call_consumer(self, kind: str, stream: str, name: str) -> dict[str, Any]:
        consumer = self.consumers.get(name)
        if consumer is None or consumer.stream.name != stream:
            raise ApiRefusal(errors.CONSUMER_NOT_FOUND)
        if kind == "consumer_info":
            return self._info_of_consumer(consumer)
        if kind == "consumer_delete":
            del self.consumers[name]
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
            "ts": timestamp(self._clock()),
        }


def _completed(request: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a stream with defaults in the place of what is missing."""
    given = {name: value for name, value in request.items() if value is not None}
    if not given.get("allow_atomic"):  # which a server leaves out then
        given.pop("allow_atomic", None)
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
