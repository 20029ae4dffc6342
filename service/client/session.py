"""The client's side of a stream, without the socket: what to send, when, and what responses mean.

Requests are numbered from 1. A request is pending until its response comes; the window bounds how
many are pending.

When the connection is lost, a new one is opened and all pending requests are sent again, in order
and under the same numbers. With the producer's name these are idempotency keys, so requests that
the server has learned get their first response, and are not learned again.

A request that the server refuses for lack of room is held back, as are all requests after it. When
nothing else is pending, they are sent again in order.
"""

import json
import uuid
from collections import deque
from typing import Any, NamedTuple

import msgpack

from wolfstream.service.calls.table import BY_NAME
from wolfstream.service.client.batches import (
    Batch,
    as_ids,
    as_rows,
    late_labels,
    one_batch,
    row_fields,
)
from wolfstream.service.client.errors import AnswerLost, ClientError, Refused, Unsuitable, may_pass
from wolfstream.service.client.results import Labelled, Learned, Predictions, read_result
from wolfstream.service.client.steps import Backoff, Connect, Receive, Retry, Steps, Transmit
from wolfstream.service.client.wire import learning_call, pack, plain

# Fewer than a server's queue takes, so that a single client does not fill it.
_MAX_SAMPLES_PENDING = 8192


class _Sent(NamedTuple):
    """A request without a response."""

    message: bytes
    samples: int


class Session:
    """The state of a stream as its client knows it.

    Attributes:
        window: how many requests may be pending.
        acknowledged: how many samples the server has acknowledged.
    """

    def __init__(self, producer: str, first: int, retry: Retry) -> None:
        """Begin without a connection.

        Args:
            producer: a name that tells the requests of this source of samples from others. No
                number may be used for another request while the server remembers its key.
            first: number of the first request.
            retry: how long a lost connection, or a request that found no room, is tried again
                without any success.

        Raises ValueError for a number below 1.
        """
        if first < 1:
            raise ValueError(f"requests are numbered from 1 on, not from {first}")
        self.window = 1
        self.acknowledged = 0
        self._query = {"producer": producer}
        self._next = first  # number of the next request
        self._backoff = Backoff(retry)
        self._connected = False
        # Whether a send failed: nothing more is sent, but responses may still arrive.
        self._broken = False
        # number -> message without a response. Resent in this order after a reconnect.
        self._pending: dict[int, _Sent] = {}
        self._samples_pending = 0  # in `_pending`
        # Refused for lack of room, or sent after such a request; ascending, all pending.
        self._held: list[int] = []
        self._refused: Refused | None = None  # the last refusal for lack of room
        # number -> response, or error in its place, that `next_response` has not returned.
        self._responses: dict[int, dict[str, Any] | ClientError] = {}
        # Sent, but not yet returned by `next_response`, in order.
        self._undelivered: deque[int] = deque()

    @classmethod
    def begin(cls, producer: str | None, first: int | None, retry: Retry) -> "Session":
        """Return a session that continues at a number, or one with new numbers.

        New numbers come with a new name. Otherwise a source that restarts without saying where it
        continues would repeat its numbers, and the server would respond without learning.
        """
        if first is not None:
            return cls(producer or uuid.uuid4().hex, first, retry)
        run = uuid.uuid4().hex
        return cls(f"{producer}.{run}" if producer else run, 1, retry)

    @property
    def unanswered(self) -> int:
        """How many requests have responses that `next_response` has not returned."""
        return len(self._undelivered)

    def open(self) -> Steps[None]:
        """Connect, and send pending requests again, unless the stream is connected."""
        while not self._connected:
            try:
                greeting = yield Connect(self._query)
                self._backoff.record_answer()
                self._greet(greeting)
                self._held.clear()
                self._connected, self._broken = True, False
                for sent in list(self._pending.values()):
                    yield from self._transmit(sent.message)
            except ClientError as error:
                self._connected = False
                pause = self._backoff.pause(error)
            else:
                break
            yield pause

    def learn(
        self,
        X: Any,
        y: Any,
        *,
        head: str = "samples",
        if_match: str | None = None,
        weight: Any = None,
    ) -> Steps[int]:
        """Send samples, or one sample, in one request; return its number.

        Args:
            X: rows, or one row; see `Client.learn`.
            y: labels or numbers, or that of the one row.
            head: see `Client.learn`.
            if_match: see `Client.learn`; the refusal is the request's result.
            weight: of the samples: a number for all, or one for each.

        Raises ClientError, ValueError, TypeError.
        """
        return self.send_batch(one_batch(X, y, weight), head, if_match)

    def send_batch(self, batch: Batch, head: str, if_match: str | None = None) -> Steps[int]:
        """Send samples in one request; see `learn`."""
        fields = batch.fields()
        if if_match is not None:
            fields["if_match"] = if_match
        return self._send(learning_call(head), len(batch.y), **fields)

    def predict(
        self,
        X: Any,
        *,
        head: str | None = None,
        min_sequence: int | str | None = None,
        probability: bool | None = None,
        confidence: float | None = None,
        explain: int | None = None,
        costs: Any = None,
        ids: Any = None,
    ) -> Steps[int]:
        """Request predictions for rows, or for one row; return the number of the request.

        Args:
            X: rows, or one row; see `Client.learn`.
            head: see `Client.predict`.
            min_sequence: see `Client.predict`.
            probability: whether to include probabilities, or standard deviations for a regression.
            confidence: of sets or intervals to include.
            explain: how many features, and samples, explanations name at most.
            costs: see `Client.predict`.
            ids: an id for each row, under which it waits for its label.

        Raises ClientError, ValueError, TypeError.
        """
        options = {
            "head": head,
            "min_sequence": min_sequence,
            "probability": probability,
            "confidence": confidence,
            "explain": explain,
            "costs": costs,
            "ids": None if ids is None else as_ids(ids),
        }
        fields = {name: value for name, value in options.items() if value is not None}
        return self._send("predict", 0, **row_fields(as_rows(X)), **fields)

    def label(self, ids: Any, y: Any) -> Steps[int]:
        """Send the labels of rows that were predicted with ids; return the number of the request.

        Receive the result of the prediction first: before that, the server may not have its rows.

        Args:
            ids: of the rows; or one id.
            y: a label or number for each; or that of the one id.

        Raises ClientError, ValueError.
        """
        labels = late_labels(ids, y)
        return self._send("label", len(labels.y), ids=labels.X, y=labels.y)

    def receive(self) -> Steps[Learned | Labelled | Predictions]:
        """Wait for the next result, in the order of sending. Raises Refused, ClientError."""
        return read_result((yield from self.next_response())[1])

    def next_response(self) -> Steps[tuple[int, dict[str, Any]]]:
        """Return (number, response) of the next request in the order of sending.

        Raises Refused with this number if the response is a refusal, and ClientError.
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
        """Wait for all responses. Raises the first refusal that `next_response` has not raised."""
        while self._pending:
            yield from self._read()
        for response in self._responses.values():
            if isinstance(response, ClientError):
                raise response

    def _send(self, call: str, samples: int, **fields: Any) -> Steps[int]:
        message = pack({"id": self._next, "op": BY_NAME[call].frame, **fields})
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
        """Return whether a request has to wait; without pending requests, any size may go."""
        has_room = self._samples_pending + samples <= _MAX_SAMPLES_PENDING
        return len(self._pending) >= (self.window if has_room else 1)

    def _transmit(self, message: bytes) -> Steps[None]:
        """Send a message. If that fails, all pending requests will be sent again."""
        if self._broken:
            return
        try:
            yield Transmit(message)
        except ClientError:
            # Responses may have arrived before the connection ended, so read them first.
            self._broken = True
        except BaseException:
            # Interrupted or cancelled: it is unknown how much of the message was sent.
            self._connected = False
            raise

    def _read(self) -> Steps[None]:
        """Read one message, or send held requests again if nothing else is pending."""
        yield from self.open()
        try:
            if self._held and len(self._held) == len(self._pending):
                yield from self._send_held()
                return
            self._take((yield Receive()))
        except ClientError as error:
            yield from self._reconnect(error)

    def _reconnect(self, error: ClientError) -> Steps[None]:
        """Open a new connection after a pause; raise the error if retrying has taken too long."""
        self._connected = False
        yield self._backoff.pause(error)
        yield from self.open()

    def _take(self, message: bytes | str) -> None:
        """Take a message of the server."""
        reply = _decode(message)
        if reply is None or not isinstance(reply.get("error", {}), dict):
            raise AnswerLost("the stream sent a message that cannot be read")
        number, problem = reply.get("id"), reply.get("error")
        ticket = number if isinstance(number, int) else 0
        sent = self._pending.get(ticket)
        if problem is not None:
            refused = Refused(problem.get("status", 0), problem, ticket)
            if sent is None:
                self._give_up(refused)
            elif may_pass(refused):
                self._refused = refused
                self._held = sorted({*self._held, ticket})
            else:
                self._finish(ticket, refused)
        elif sent is not None:
            if sent.samples and self._held:
                self._lose_order(ticket)
            self._backoff.reset()
            self.acknowledged += sent.samples
            self._finish(ticket, reply)

    def _finish(self, ticket: Any, response: dict[str, Any] | ClientError) -> None:
        """Take the response of a pending request, or an error in its place."""
        self._samples_pending -= self._pending.pop(ticket).samples
        if ticket in self._held:
            self._held.remove(ticket)
        self._responses[ticket] = response

    def _give_up(self, refused: Refused) -> None:
        """Fail all pending requests: the server could not read one, and did not say which."""
        self._connected = False
        pending = list(self._pending)
        lost = AnswerLost(f"the server could not read one of {len(pending)} messages: {refused}")
        for ticket in pending:
            self._finish(ticket, lost)

    def _lose_order(self, ticket: int) -> None:
        """Fail the held requests before a learned one: they can no longer be learned in order."""
        assert self._refused is not None
        earlier = [held for held in self._held if held < ticket and self._pending[held].samples]
        for held in earlier:
            refused = Refused(self._refused.status, self._refused.problem, held)
            refused.add_note("a later request was learned first, so the order is lost")
            self._finish(held, refused)

    def _send_held(self) -> Steps[None]:
        """Send the held requests again after a pause, or fail them if that has taken too long."""
        assert self._refused is not None
        try:
            pause = self._backoff.pause(self._refused)
        except Refused as refused:
            held, self._held = self._held, []
            for ticket in held:
                self._finish(ticket, Refused(refused.status, refused.problem, ticket))
            return
        yield pause
        held, self._held = self._held, []
        for ticket in held:
            yield from self._transmit(self._pending[ticket].message)

    def _greet(self, message: bytes | str) -> None:
        """Take the server's greeting. Raises Refused, Unsuitable."""
        reply = _decode(message) or {}
        problem = reply.get("error")
        if isinstance(problem, dict):
            raise Refused(problem.get("status", 0), problem)
        try:
            self.window = max(1, int(reply["hello"]["window"]))
        except (KeyError, TypeError, ValueError):
            raise Unsuitable("the stream's greeting cannot be read: is this wolfstream?") from None


class SessionStream:
    """What the streams of blocking clients and of clients for asyncio have in common."""

    def __init__(self, session: Session) -> None:
        self._calls = session

    @property
    def window(self) -> int:
        """How many requests may be without a response at a time."""
        return self._calls.window

    @property
    def unanswered(self) -> int:
        """How many requests have results that were not received."""
        return self._calls.unanswered

    @property
    def acknowledged(self) -> int:
        """How many samples the server has acknowledged."""
        return self._calls.acknowledged


def _decode(message: bytes | str) -> dict[str, Any] | None:
    return plain(msgpack.unpackb if isinstance(message, bytes) else json.loads, message)
