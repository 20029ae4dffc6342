"""The client of a running server for asyncio."""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from wolfstream.service.client.events import EventReader
from wolfstream.service.client.steps import Retry, Steps, awaited
from wolfstream.service.client.sync import ClientCalls
from wolfstream.service.client.transport import AsyncTransport
from wolfstream.service.client.wire import ANSWER_SECONDS, Verify

# websockets is imported when a stream is opened.
if TYPE_CHECKING:
    from wolfstream.service.client.aio_stream import AsyncStream


T = TypeVar("T")


class AsyncClient:
    """The connection to a server; `client.sync.Client` describes the methods, awaited here.

    Tasks of one event loop may share it.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        key: str | None = None,
        *,
        timeout: float = ANSWER_SECONDS,
        retry: float | None = None,
        verify: Verify = True,
    ) -> None:
        self._http, self._retry = AsyncTransport(url, key, timeout, verify), Retry(retry)
        self.url = self._http.url
        self._key, self._timeout = key, timeout
        self._calls = ClientCalls(self._retry)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    learn = awaited(ClientCalls.learn)
    predict = awaited(ClientCalls.predict)
    label = awaited(ClientCalls.label)
    predict_proba = awaited(ClientCalls.predict_proba)
    predict_set = awaited(ClientCalls.predict_set)
    predict_interval = awaited(ClientCalls.predict_interval)
    explain = awaited(ClientCalls.explain)
    models = awaited(ClientCalls.models)
    create = awaited(ClientCalls.create)
    describe = awaited(ClientCalls.describe)
    delete = awaited(ClientCalls.delete)
    upload = awaited(ClientCalls.upload)
    download = awaited(ClientCalls.download)
    refit = awaited(ClientCalls.refit)
    history = awaited(ClientCalls.history)
    rollback = awaited(ClientCalls.rollback)
    challengers = awaited(ClientCalls.challengers)
    promote = awaited(ClientCalls.promote)
    metrics_history = awaited(ClientCalls.metrics_history)
    snapshot = awaited(ClientCalls.snapshot)
    ask = awaited(ClientCalls.ask)

    def events(self, name: str) -> AsyncIterator[dict[str, Any]]:
        """Yield a model's state once a second until it is deleted."""
        return self._http.events(EventReader(name, self._retry))

    def stream(
        self, name: str, producer: str | None = None, *, first: int | None = None
    ) -> "AsyncStream":
        """Return a stream to a model, for an `async with` statement."""
        from wolfstream.service.client.aio_stream import AsyncStream
        from wolfstream.service.client.session import Session
        from wolfstream.service.client.stream_address import stream_address

        address = stream_address(self.url, name, self._key, self._timeout, self._http.tls_context)
        session = Session.begin(producer, first, self._retry)
        return AsyncStream(address, session)

    async def _run(self, steps: Steps[T]) -> T:
        return await self._http.run(steps)
