"""The connections of a replay to a model: over HTTP, or over its websocket stream.

Both send each request with a key of its own, so it is learned once, however often it is sent.
"""

import uuid
from collections import deque
from typing import Any, Protocol, Self

from wolfstream.service.client.batches import Batch, as_rows, row_fields
from wolfstream.service.client.session import Session
from wolfstream.service.client.steps import RETRY_SECONDS, Retry, blocking
from wolfstream.service.client.stream import Stream
from wolfstream.service.client.stream_address import stream_address
from wolfstream.service.client.sync import Client
from wolfstream.service.client.wire import (
    IDEMPOTENCY_KEY,
    learning_call,
    pack,
    request_of,
)

# A request may have 100,000 samples.
_ANSWER_SECONDS = 120.0


class Connection(Protocol):
    """A connection whose `send_batch` may return before the samples are learned."""

    @property
    def window(self) -> int:
        """How many requests may be without a response at a time."""

    @property
    def unanswered(self) -> int:
        """How many requests have responses that `next_response` has not returned."""

    def send_batch(self, batch: Batch, head: str) -> int:
        """Send samples for a head to learn; return the number of the request."""

    def next_response(self) -> tuple[int, dict[str, Any]]:
        """Return (number, response) of the next request. Raises ClientError."""


class HttpConnection:
    """A model over HTTP, one request after another."""

    window = 1

    def __init__(
        self, url: str, model: str, key: str | None = None, retry: float = RETRY_SECONDS
    ) -> None:
        self.client = Client(url, key, timeout=_ANSWER_SECONDS, retry=retry)
        self._model = model
        self._key_prefix = uuid.uuid4().hex  # of the idempotency keys
        # (number, response) that `next_response` has not returned.
        self._responses: deque[tuple[int, dict[str, Any]]] = deque()
        self._sent = 0  # number of the last request

    def __enter__(self) -> Self:
        # Fail at once if there is no server.
        self.client.ask(request_of("livez"), retry=Retry(0.0))
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def describe(self) -> dict[str, Any]:
        """Return the model's description; raise Refused with status 404 if there is no model."""
        return self.client.describe(self._model)

    def create(self, spec: Any) -> dict[str, Any]:
        """Create the model, unless it exists with the same spec; return its description."""
        return self.client.ask(request_of("create_model", self._model, pack(spec)))

    def predict(self, X: Any, head: str) -> dict[str, Any]:
        """Return the predictions of a head for the rows."""
        body = pack(row_fields(as_rows(X)))
        return self.client.ask(request_of("predict", self._model, body, {"head": head}))

    @property
    def unanswered(self) -> int:
        """How many requests have responses that `next_response` has not returned."""
        return len(self._responses)

    def send_batch(self, batch: Batch, head: str) -> int:
        """Send samples for a head to learn, and wait; return the number of the request."""
        self._sent += 1
        headers = {IDEMPOTENCY_KEY: f"{self._key_prefix}.{self._sent}"}
        body = pack(batch.fields())
        request = request_of(learning_call(head), self._model, body, headers=headers)
        response = self.client.ask(request)
        self._responses.append((self._sent, response))
        return self._sent

    def next_response(self) -> tuple[int, dict[str, Any]]:
        """Return (number, response) of the next request."""
        return self._responses.popleft()


class WebsocketConnection(Stream):
    """A model over its websocket stream, many requests at a time, learned in order."""

    def __init__(
        self, url: str, model: str, key: str | None = None, retry: float = RETRY_SECONDS
    ) -> None:
        address = stream_address(url, model, key, _ANSWER_SECONDS, verify=True)
        super().__init__(address, Session(uuid.uuid4().hex, 1, Retry(retry)))

    def __exit__(self, *_: object) -> None:
        self._socket.close()  # a replay that was interrupted does not wait for responses

    send_batch = blocking(Session.send_batch)
    next_response = blocking(Session.next_response)
