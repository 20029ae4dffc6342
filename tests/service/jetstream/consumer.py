"""Push consumers: the server hands the messages of a stream to a subject, one after another.

Only what the ordered consumers of nats-py need is here: no acknowledgements, no redelivery, and no
flow control, which a real server begins after some megabytes.
"""

from typing import Any

from tests.service.jetstream.packet import Packet, encoded, extended
from tests.service.jetstream.store import StoredMessage
from tests.service.jetstream.stream import Stream

_NANOSECONDS = 1e9


class Consumer:
    """A consumer of one stream, from its creation until nobody subscribes to it any more.

    config: as the client has asked for it.
    delivered: the number of messages that were handed out.
    """

    def __init__(self, name: str, stream: Stream, config: dict[str, Any], created: int) -> None:
        self.name, self.stream, self.config, self.created = name, stream, config, created
        self.delivered = self.delivered_sequence = 0
        policy = config.get("deliver_policy", "all")
        self._filter = str(config.get("filter_subject") or "")
        # Messages that are handed out first, ascending.
        self._first = list[int]()
        self._next = 1
        if policy == "last_per_subject":
            self._first = stream.store.last_per_subject(self._filter or ">")
            self._next = stream.store.last + 1
        elif policy == "by_start_sequence":
            self._next = int(config["opt_start_seq"])
        elif policy == "new":
            self._next = stream.store.last + 1
        elif policy != "all":
            raise NotImplementedError(f"the stand-in does not model the policy {policy}")

    @property
    def subject(self) -> str:
        """Return the subject that the messages are handed to."""
        return str(self.config["deliver_subject"])

    @property
    def beat_seconds(self) -> float:
        """Return the interval of heartbeats; 0 for none."""
        return float(self.config.get("idle_heartbeat") or 0) / _NANOSECONDS

    @property
    def n_pending(self) -> int:
        """Return the number of messages that wait to be handed out."""
        store = self.stream.store
        first = sum(store.get(sequence) is not None for sequence in self._first)
        return first + store.count_from(self._filter, self._next)

    def take(self) -> Packet | None:
        """Return the next message as it is handed out; None if there is none."""
        message = self._take()
        if message is None:
            return None
        self.delivered += 1
        self.delivered_sequence = message.sequence
        reply = (
            f"$JS.ACK.{self.stream.name}.{self.name}.1.{message.sequence}.{self.delivered}."
            f"{message.time}.{self.n_pending}"
        )
        headers, body = message.headers, message.body
        if self.config.get("headers_only"):
            headers, body = extended(headers, {"Nats-Msg-Size": str(len(body))}), b""
        return Packet(message.subject, reply, headers, body)

    def heartbeat(self) -> Packet:
        """Return what tells the client how far the consumer is."""
        headers = {
            "Nats-Last-Consumer": str(self.delivered),
            "Nats-Last-Stream": str(self.delivered_sequence),
        }
        return Packet(self.subject, "", encoded(headers, "100 Idle Heartbeat"))

    def _take(self) -> StoredMessage | None:
        store = self.stream.store
        while self._first:
            if message := store.get(self._first.pop(0)):
                return message
        found = store.next_of(self._filter, self._next)
        if found is not None:
            self._next = found.sequence + 1
        return found
