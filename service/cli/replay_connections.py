"""The connections of a replay to a model: over HTTP, or over its websocket stream.

Both send each request with a key of its own, so it is learned once, however often it is sent.
"""

import uuid
from collections import deque
from types import TracebackType
from typing import Any, Protocol, Self

from wolfstream.service.client.batches import Batch, as_rows, row_fields
from wolfstream.service.client.session import Session
from wolfstream.service.client.steps import RETRY_SECONDS, Retry
from wolfstream.service.client.stream_address import stream_address
from wolfstream.service.client.stream_socket import Socket
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
    """A connection whose `send` may return before the samples are learned."""

    @property
    def window(self) -> int:
        """How many requests may be without a response at a time."""

    @property
    def unanswered(self) -> int:
        """How many requests have responses that `receive` has not returned."""

    def send(self, head: str, batch: Batch) -> int:
        """Send samples for a head to learn; return the number of the request."""

    def receive(self) -> tuple[int, dict[str, Any]]:
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
        # (number, response) that `receive` has not returned.
        self._responses: deque[tuple[int, dict[str, Any]]] = deque()
        self._sent = 0  # number of the last request

    def __enter__(self) -> Self:
        # Fail at once if there is no server.
        self.client.ask(request_of("livez"), retry=Retry(0.0))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
        """How many requests have responses that `receive` has not returned."""
        return len(self._responses)

    def send(self, head: str, batch: Batch) -> int:
        """Send samples for a head to learn, and wait; return the number of the request."""
        self._sent += 1
        headers = {IDEMPOTENCY_KEY: f"{self._key_prefix}.{self._sent}"}
        body = pack(batch.fields())
        request = request_of(learning_call(head), self._model, body, headers=headers)
        response = self.client.ask(request)
        self._responses.append((self._sent, response))
        return self._sent

    def receive(self) -> tuple[int, dict[str, Any]]:
        """Return (number, response) of the next request."""
        return self._responses.popleft()


class WebsocketConnection:
    """A model over its websocket stream, many requests at a time, learned in order."""

    def __init__(
        self, url: str, model: str, key: str | None = None, retry: float = RETRY_SECONDS
    ) -> None:
        self._session = Session(uuid.uuid4().hex, 1, Retry(retry))
        self._socket = Socket(stream_address(url, model, key, _ANSWER_SECONDS, verify=True))

    def __enter__(self) -> Self:
        try:
            self._socket.run(self._session.open())
        except BaseException:
            self._socket.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()

    @property
    def window(self) -> int:
        """How many requests may be without a response at a time."""
        return self._session.window

    @property
    def unanswered(self) -> int:
        """How many requests have responses that `receive` has not returned."""
        return self._session.unanswered

    def send(self, head: str, batch: Batch) -> int:
        """Send samples for a head to learn; return the number of the request."""
        return self._socket.run(self._session.send_batch(batch, head))

    def receive(self) -> tuple[int, dict[str, Any]]:
        """Return (number, response) of the next request. Raises Refused with the number."""
        return self._socket.run(self._session.next_response())
