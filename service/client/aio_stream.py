"""A model's websocket stream over asyncio."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from contextlib import AsyncExitStack
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from wolfstream.service.client.errors import AnswerLost, ClientError
from wolfstream.service.client.first_answer import FirstAnswer
from wolfstream.service.client.results import Labelled, Learned, Predictions
from wolfstream.service.client.session import Session, SessionStream
from wolfstream.service.client.steps import (
    Connect,
    Effect,
    Pause,
    Receive,
    Steps,
    Transmit,
    awaited,
    run_async,
)
from wolfstream.service.client.stream_address import (
    Address,
    check_subprotocol,
    lost_connection,
    opening_error,
)

T = TypeVar("T")


class AsyncStream(SessionStream):
    """A stream to one model; `client.stream.Stream` describes the methods, awaited here.

    `AsyncClient.stream` makes it, and `async with` opens and closes it. Tasks may share it. A call
    that is cancelled may have sent its request.
    """

    def __init__(self, address: Address, session: Session) -> None:
        """Begin without a connection; see `client.stream.Stream`."""
        self._address = address
        self._first_answer = FirstAnswer(address.url, address.options["open_timeout"])
        super().__init__(session)
        self._stack = AsyncExitStack()  # closes the connection
        self._connection: ClientConnection | None = None
        self._lock = asyncio.Lock()  # one call at a time uses the connection

    async def __aenter__(self) -> Self:
        try:
            await self._run(self._calls.open())
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                await self._run(self._calls.flush())
        finally:
            await self._stack.aclose()

    learn = awaited(Session.learn)
    predict = awaited(Session.predict)
    label = awaited(Session.label)
    receive = awaited(Session.receive)

    async def __aiter__(self) -> AsyncIterator[Learned | Labelled | Predictions]:
        """Yield the results of all requests that were sent."""
        while self.unanswered:
            yield await self.receive()

    async def learn_each(
        self,
        samples: Iterable[tuple[Any, Any]] | AsyncIterable[tuple[Any, Any]],
        *,
        head: str = "samples",
    ) -> AsyncIterator[Learned | Labelled | Predictions]:
        """Send each pair of X and y in a request of its own; yield the results in order."""
        async for X, y in _iterate(samples):
            while self.unanswered >= self.window:
                yield await self.receive()
            await self.learn(X, y, head=head)
        async for result in self:
            yield result

    async def _run(self, steps: Steps[T]) -> T:
        async with self._lock:
            try:
                return await run_async(steps, self._do)
            except ClientError as error:
                error.acknowledged = self._calls.acknowledged
                raise

    async def _do(self, effect: Effect) -> Any:
        match effect:
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case Connect(query):
                return await self._connect(f"{self._address.url}?{urlencode(query)}")
            case Transmit(message):
                return await self._transmit(message)
            case Receive():
                return await self._receive()
        raise AssertionError(f"a stream does not do {effect}")

    async def _connect(self, url: str) -> str | bytes:
        await self._stack.aclose()
        try:
            opening = connect(url, **self._address.options)
            with self._first_answer.awaited():
                self._connection = await self._stack.enter_async_context(opening)
        except (OSError, InvalidHandshake, EOFError, ConnectionClosed) as error:
            raise opening_error(self._address.url, error) from None
        check_subprotocol(self._address.url, self._connection.subprotocol)
        return await self._receive()

    async def _transmit(self, message: bytes) -> None:
        assert self._connection is not None
        try:
            await self._connection.send(message)
        except ConnectionClosed as error:
            raise lost_connection(self._address.url, error) from None

    async def _receive(self) -> str | bytes:
        assert self._connection is not None
        try:
            async with asyncio.timeout(self._address.timeout):
                return await self._connection.recv()
        except ConnectionClosed as error:
            raise lost_connection(self._address.url, error) from None
        except TimeoutError:
            address = self._address
            raise AnswerLost(f"{address.url} sent nothing for {address.timeout:g} s") from None


async def _iterate(
    samples: Iterable[tuple[Any, Any]] | AsyncIterable[tuple[Any, Any]],
) -> AsyncIterator[tuple[Any, Any]]:
    if isinstance(samples, AsyncIterable):
        async for sample in samples:
            yield sample
    else:
        for sample in samples:
            yield sample
