"""The blocking client of a running server.

    with Client("http://127.0.0.1:8000") as client:
        client.create("rooms")
        client.learn("rooms", X, y)
        print(client.predict("rooms", X).predictions)

`client.aio.AsyncClient` has the same methods, to be awaited. Each call is written once, as steps
(`client.sample_calls`, `client.model_calls`, `client.session`), which both clients carry out
(`client.transport`).

Samples are sent with an Idempotency-Key. So a call is repeated if its connection broke, its
response was lost or the server had no room, and each sample is still learned once. `client.errors`
has the errors that remain.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from wolfstream.service.client.events import EventReader
from wolfstream.service.client.model_calls import ModelCalls
from wolfstream.service.client.sample_calls import SampleCalls
from wolfstream.service.client.steps import Retry, Steps, blocking
from wolfstream.service.client.transport import AsyncTransport, Transport
from wolfstream.service.client.wire import ANSWER_SECONDS, Verify

# websockets is imported when a stream is opened.
if TYPE_CHECKING:
    from wolfstream.service.client.session import Session
    from wolfstream.service.client.stream import Stream
    from wolfstream.service.client.stream_address import Address

T = TypeVar("T")
H = TypeVar("H", Transport, AsyncTransport)


class ClientCalls(ModelCalls, SampleCalls):
    """All calls of a client, as steps."""


class ClientBase(Generic[H]):
    """What a client is, whichever way it waits: `Client` describes the arguments."""

    _transport: type[H]

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        key: str | None = None,
        *,
        timeout: float = ANSWER_SECONDS,
        retry: float | None = None,
        verify: Verify = True,
    ) -> None:
        self._http: H = self._transport(url, key, timeout, verify)
        self._retry = Retry(retry)
        self.url: str = self._http.url
        self._key, self._timeout = key, timeout
        self._calls = ClientCalls(self._retry)

    def _stream(
        self, name: str, producer: str | None, first: int | None
    ) -> "tuple[Address, Session]":
        from wolfstream.service.client.session import Session
        from wolfstream.service.client.stream_address import stream_address

        address = stream_address(self.url, name, self._key, self._timeout, self._http.tls_context)
        return address, Session.begin(producer, first, self._retry)


class Client(ClientBase[Transport]):
    """The connection to a server. Threads may share it; `close` it, or use a `with` statement.

    Args:
        url: such as http://127.0.0.1:8000, or https://...
        key: an API key, if the server needs one.
        timeout: seconds without a response after which a connection counts as lost.
        retry: seconds for which a failing call is repeated, from its first failure, also while
            there is no server yet. For a stream, or a call of many batches, from the first failure
            since something succeeded. By default 60, but the first call fails at once if there is
            no server. Retrying for more than a second logs a warning that says until when, and so
            does a server that is silent for longer before its first answer.
        verify: for https: a file or folder of certificates to trust, or an SSLContext. True trusts
            public authorities, False trusts any certificate.

    Attributes:
        url: of the server.
    """

    _transport = Transport

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    learn = blocking(ClientCalls.learn)
    predict = blocking(ClientCalls.predict)
    label = blocking(ClientCalls.label)
    predict_proba = blocking(ClientCalls.predict_proba)
    predict_set = blocking(ClientCalls.predict_set)
    predict_interval = blocking(ClientCalls.predict_interval)
    explain = blocking(ClientCalls.explain)
    models = blocking(ClientCalls.models)
    create = blocking(ClientCalls.create)
    describe = blocking(ClientCalls.describe)
    delete = blocking(ClientCalls.delete)
    upload = blocking(ClientCalls.upload)
    download = blocking(ClientCalls.download)
    refit = blocking(ClientCalls.refit)
    history = blocking(ClientCalls.history)
    rollback = blocking(ClientCalls.rollback)
    challengers = blocking(ClientCalls.challengers)
    promote = blocking(ClientCalls.promote)
    metrics_history = blocking(ClientCalls.metrics_history)
    snapshot = blocking(ClientCalls.snapshot)
    ask = blocking(ClientCalls.ask)

    def events(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield a model's state once a second, as GET .../events does, until it is deleted.

        A lost connection is opened again, for at most `retry` seconds. States that were missed
        within the last half minute come first.
        """
        return self._http.events(EventReader(name, self._retry))

    def stream(
        self, name: str, producer: str | None = None, *, first: int | None = None
    ) -> "Stream":
        """Return a stream to a model, for a `with` statement.

            with client.stream("rooms") as stream:
                for result in stream.learn_each(samples):
                    print(result.sequence)

        Args:
            name: of the model.
            producer: a name for this source of samples, which makes the numbers of its requests
                idempotency keys. By default the stream makes its own name.
            first: number of the first request, from 1. A source that restarts and continues gives
                its name and the number after the last request that it knows to be acknowledged:
                requests that were learned get their first response, and are not learned again. By
                default the numbers are new each time.
        """
        from wolfstream.service.client.stream import Stream

        return Stream(*self._stream(name, producer, first))

    def _run(self, steps: Steps[T]) -> T:
        return self._http.run(steps)
