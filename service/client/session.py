"""The client's side of a stream, without the socket: what to send, when, and what replies mean.

Requests are numbered from 1 on. A request is pending until its response comes; the window bounds
the number of pending requests. When the connection is lost, a new one is opened and all pending
requests are sent again, in order, under the same numbers: with the producer's name these are
idempotency keys, so requests that the server had learned get their first response and are not
learned again.

A request that the server has no room for is held, and so are all requests after it; when nothing
else is pending, they are sent again in their order.
"""

import json
import uuid
from collections import deque
from typing import Any, NamedTuple

import msgpack

from wolfstream.service.calls.table import BY_NAME
from wolfstream.service.client.batches import Batch, fields_of
from wolfstream.service.client.errors import AnswerLost, ClientError, Refused, Unsuitable, may_pass
from wolfstream.service.client.steps import Connect, Patience, Receive, Retry, Steps, Transmit
from wolfstream.service.client.wire import learning_call, packed, plain

# Fewer than a server lets wait to be learned, so that a single client does not fill its queue.
_MOST_SAMPLES_PENDING = 8192


class _Sent(NamedTuple):
    message: bytes
    samples: int


class Session:
    """The state of a stream as its client knows it.

    producer: a name for this source of samples, which tells its requests from those of
        others; no number may be used again while the server remembers its key.
    first: the number of the first request.
    retry: how long a lost connection, or a request that found no room, is tried again without
        any success.

    Raises ValueError for a number below 1.
    """

    def __init__(self, producer: str, first: int, retry: Retry) -> None:
        if first < 1:
            raise ValueError(f"requests are numbered from 1 on, not from {first}")
        self.window = 1
        self.acknowledged = 0
        self._query = {"producer": producer}
        self._next = first
        self._patience = Patience(retry)
        self._connected = False
        self._broken = False
        self._undelivered: deque[int] = deque()
        self._pending: dict[int, _Sent] = {}
        self._responses: dict[int, dict[str, Any] | ClientError] = {}
        self._held: list[int] = []
        self._refused: Refused | None = None
        self._samples_pending = 0

    @classmethod
    def of(cls, producer: str | None, first: int | None, retry: Retry) -> "Session":
        """Return the session of a source that goes on at a number, or else begins with new numbers.

        A source that restarts without saying where it continues would otherwise use numbers again,
        and the server would answer without learning.
        """
        if first is not None:
            return cls(producer or uuid.uuid4().hex, first, retry)
        run = uuid.uuid4().hex
        return cls(f"{producer}.{run}" if producer else run, 1, retry)

    @property
    def unanswered(self) -> int:
        """The number of requests whose responses `receive` has not returned."""
        return len(self._undelivered)

    def open(self) -> Steps[None]:
        """Connect, unless the stream is connected."""
        while not self._connected:
            try:
                greeting = yield Connect(self._query)
                self._patience.answered()
                self._greet(greeting)
                self._held.clear()
                self._connected, self._broken = True, False
                for sent in list(self._pending.values()):
                    yield from self._transmit(sent.message)
            except ClientError as error:
                self._connected = False
                pause = self._patience.pause(error)
            else:
                break
            yield pause

    def learn(self, batch: Batch, head: str, if_match: str | None = None) -> Steps[int]:
        """Send samples for a head as soon as the window has room; return the request's number.

        if_match: the state or the epoch of the model in which they are to be learned.
        """
        fields = batch.fields()
        if if_match is not None:
            fields["if_match"] = if_match
        return (yield from self._send(learning_call(head), len(batch.y), **fields))

    def predict(self, rows: Any, **options: Any) -> Steps[int]:
        """Ask for predictions as soon as the window has room; return the request's number."""
        given = {name: value for name, value in options.items() if value is not None}
        return (yield from self._send("predict", 0, **fields_of(rows), **given))

    def label(self, labels: Batch) -> Steps[int]:
        """Send labels of predicted rows as soon as the window has room; return the number."""
        return (yield from self._send("label", len(labels.y), ids=labels.X, y=labels.y))

    def receive(self) -> Steps[tuple[int, dict[str, Any]]]:
        """Return the number of the next request, in the order of sending, and its response.

        Raises Refused with this number if the response is a refusal.
        """
        if not self._undelivered:
            raise ClientError("every response has been received: send something first")
        ticket = self._undelivered[0]
        while ticket not in self._responses:
            yield from self._read()
        self._undelivered.popleft()
        response = self._responses.pop(ticket)
        if isinstance(response, ClientError):
            raise response
        return ticket, response

    def flush(self) -> Steps[None]:
        """Wait for all responses. Raises the first refusal that was not received."""
        while self._pending:
            yield from self._read()
        for response in self._responses.values():
            if isinstance(response, ClientError):
                raise response

    def _send(self, call: str, samples: int, **fields: Any) -> Steps[int]:
        message = packed({"id": self._next, "op": BY_NAME[call].frame, **fields})
        yield from self.open()
        while self._is_full(samples):
            yield from self._read()
        ticket = self._next
        self._next += 1
        self._pending[ticket] = _Sent(message, samples)
        self._samples_pending += samples
        self._undelivered.append(ticket)
        if self._held:
            self._held.append(ticket)
        else:
            yield from self._transmit(message)
        return ticket

    def _is_full(self, samples: int) -> bool:
        room = self._samples_pending + samples <= _MOST_SAMPLES_PENDING
        return len(self._pending) >= (self.window if room else 1)

    def _transmit(self, message: bytes) -> Steps[None]:
        """Send a message; if that fails, all pending requests are sent again later."""
        if self._broken:
            return
        try:
            yield Transmit(message)
        except ClientError:
            # Responses may have arrived before the connection ended: they are read first.
            self._broken = True
        except BaseException:
            # Interrupted or cancelled: how much of the message was sent is unknown.
            self._connected = False
            raise

    def _read(self) -> Steps[None]:
        """Read one more message and take it into account."""
        yield from self.open()
        try:
            if self._held and len(self._held) == len(self._pending):
                yield from self._send_held()
                return
            self._take((yield Receive()))
        except ClientError as error:
            yield from self._again(error)

    def _again(self, error: ClientError) -> Steps[None]:
        """Open a new connection, after a pause, in place of one that was lost."""
        self._connected = False
        yield self._patience.pause(error)
        yield from self.open()

    def _take(self, message: bytes | str) -> None:
        reply = _decoded(message)
        if reply is None or not isinstance(reply.get("error", {}), dict):
            raise AnswerLost("the stream sent a message that cannot be read")
        named, problem = reply.get("id"), reply.get("error")
        ticket = named if isinstance(named, int) else 0
        sent = self._pending.get(ticket)
        if problem is not None:
            refused = Refused(problem.get("status", 0), problem, ticket)
            if sent is None:
                self._give_up(refused)
            elif may_pass(refused):
                self._refused = refused
                self._held = sorted({*self._held, ticket})
            else:
                self._settle(ticket, refused)
        elif sent is not None:
            if sent.samples and self._held:
                self._lose_order(ticket)
            self._patience.renew()
            self.acknowledged += sent.samples
            self._settle(ticket, reply)

    def _settle(self, ticket: Any, response: dict[str, Any] | ClientError) -> None:
        self._samples_pending -= self._pending.pop(ticket).samples
        if ticket in self._held:
            self._held.remove(ticket)
        self._responses[ticket] = response

    def _give_up(self, refused: Refused) -> None:
        """Fail all pending requests: the server could not read one, and cannot say which."""
        self._connected = False
        pending = list(self._pending)
        lost = AnswerLost(f"the server could not read one of {len(pending)} messages: {refused}")
        for ticket in pending:
            self._settle(ticket, lost)

    def _lose_order(self, ticket: int) -> None:
        """Fail the held requests before one that was learned: their place in the order is gone."""
        assert self._refused is not None
        for held in [h for h in self._held if h < ticket and self._pending[h].samples]:
            refused = Refused(self._refused.status, self._refused.problem, held)
            refused.add_note("a later request was learned first, so the order is lost")
            self._settle(held, refused)

    def _send_held(self) -> Steps[None]:
        assert self._refused is not None
        try:
            pause = self._patience.pause(self._refused)
        except Refused as refused:
            held, self._held = self._held, []
            for ticket in held:
                self._settle(ticket, Refused(refused.status, refused.problem, ticket))
            return
        yield pause
        held, self._held = self._held, []
        for ticket in held:
            yield from self._transmit(self._pending[ticket].message)

    def _greet(self, message: bytes | str) -> None:
        reply = _decoded(message) or {}
        problem = reply.get("error")
        if isinstance(problem, dict):
            raise Refused(problem.get("status", 0), problem)
        try:
            self.window = max(1, int(reply["hello"]["window"]))
        except (KeyError, TypeError, ValueError):
            raise Unsuitable("the stream's greeting cannot be read: is this wolfstream?") from None


def _decoded(message: bytes | str) -> dict[str, Any] | None:
    return plain(msgpack.unpackb if isinstance(message, bytes) else json.loads, message)
