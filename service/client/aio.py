"""The client of a running server for asyncio."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Self, TypeVar

from wolfstream.service.client.events import EventReader
from wolfstream.service.client.steps import Steps, awaited
from wolfstream.service.client.sync import ClientBase, ClientCalls
from wolfstream.service.client.transport import AsyncTransport

# websockets is imported when a stream is opened.
if TYPE_CHECKING:
    from wolfstream.service.client.aio_stream import AsyncStream


T = TypeVar("T")


class AsyncClient(ClientBase[AsyncTransport]):
    """The connection to a server; `client.sync.Client` describes the methods, awaited here.

    Tasks of one event loop may share it.
    """

    _transport = AsyncTransport

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
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

        return AsyncStream(*self._stream(name, producer, first))

    async def _run(self, steps: Steps[T]) -> T:
        return await self._http.run(steps)
