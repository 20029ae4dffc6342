"""Carries out a client's steps over HTTP, blocking and for asyncio."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, TypeVar

import httpx

from wolfstream.service.client.errors import ClientError, Refused
from wolfstream.service.client.events import EventReader
from wolfstream.service.client.first_answer import FirstAnswer
from wolfstream.service.client.steps import (
    Effect,
    Pause,
    Reply,
    Request,
    Steps,
    Work,
    run,
    run_async,
)
from wolfstream.service.client.wire import (
    EVENT_STREAM,
    Verify,
    check_url,
    connection_options,
    request_error,
    request_headers,
    tls_context,
)

T = TypeVar("T")


class Transport:
    """Blocking connections to one server."""

    def __init__(self, url: str, key: str | None, timeout: float, verify: Verify) -> None:
        """Begin without a connection; see `client.sync.Client` for the arguments."""
        self.url = check_url(url)
        self.tls_context = tls_context(self.url, verify)
        self._first_answer = FirstAnswer(self.url, timeout)
        self._http = httpx.Client(**connection_options(self.url, key, timeout, self.tls_context))

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def run(self, steps: Steps[T]) -> T:
        """Carry out steps and return their result. Raises ClientError."""
        return run(steps, self._do)

    def events(self, reader: EventReader) -> Iterator[dict[str, Any]]:
        """Yield the states that a reader returns, over as many connections as it takes."""
        while True:
            lost: ClientError | None = None
            request = reader.request()
            headers = {**request.headers, "accept": EVENT_STREAM}
            try:
                with self._http.stream(request.method, request.path, headers=headers) as response:
                    if response.status_code != 200:
                        response.read()
                        reader.check(_reply(response))
                    else:
                        for line in response.iter_lines():
                            if (state := reader.take(line)) is not None:
                                yield state
            except httpx.RequestError as error:
                lost = request_error(self.url, error)
            except Refused as error:
                lost = error
            if reader.ended:
                return
            time.sleep(reader.pause(lost).seconds)

    def _do(self, effect: Effect) -> Any:
        if isinstance(effect, Pause):
            return time.sleep(effect.seconds)
        if isinstance(effect, Work):
            return effect.do()
        assert isinstance(effect, Request)
        try:
            with self._first_answer.awaited():
                response = self._http.request(**_arguments(effect))
        except httpx.RequestError as error:
            raise request_error(self.url, error) from None
        return _reply(response)


class AsyncTransport:
    """Connections to one server for asyncio."""

    def __init__(self, url: str, key: str | None, timeout: float, verify: Verify) -> None:
        """Begin without a connection; see `client.sync.Client` for the arguments."""
        self.url = check_url(url)
        self.tls_context = tls_context(self.url, verify)
        self._first_answer = FirstAnswer(self.url, timeout)
        self._http = httpx.AsyncClient(
            **connection_options(self.url, key, timeout, self.tls_context)
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def run(self, steps: Steps[T]) -> T:
        """Carry out steps and return their result. Raises ClientError."""
        return await run_async(steps, self._do)

    async def events(self, reader: EventReader) -> AsyncIterator[dict[str, Any]]:
        """Yield the states that a reader returns, over as many connections as it takes."""
        while True:
            lost: ClientError | None = None
            request = reader.request()
            headers = {**request.headers, "accept": EVENT_STREAM}
            try:
                async with self._http.stream(
                    request.method, request.path, headers=headers
                ) as response:
                    if response.status_code != 200:
                        await response.aread()
                        reader.check(_reply(response))
                    else:
                        async for line in response.aiter_lines():
                            if (state := reader.take(line)) is not None:
                                yield state
            except httpx.RequestError as error:
                lost = request_error(self.url, error)
            except Refused as error:
                lost = error
            if reader.ended:
                return
            await asyncio.sleep(reader.pause(lost).seconds)

    async def _do(self, effect: Effect) -> Any:
        if isinstance(effect, Pause):
            return await asyncio.sleep(effect.seconds)
        if isinstance(effect, Work):
            return await asyncio.to_thread(effect.do)
        assert isinstance(effect, Request)
        try:
            with self._first_answer.awaited():
                response = await self._http.request(**_arguments(effect))
        except httpx.RequestError as error:
            raise request_error(self.url, error) from None
        return _reply(response)


def _reply(response: httpx.Response) -> Reply:
    """Return a response, whose content was read, as the outcome of a step."""
    reason, headers = response.reason_phrase, response.headers
    return Reply(response.status_code, reason, headers, response.content)


def _arguments(request: Request) -> dict[str, Any]:
    """Return a request as arguments of httpx's clients."""
    return {
        "method": request.method,
        "url": request.path,
        "content": request.body,
        "params": request.query,
        "headers": request_headers(request),
    }
