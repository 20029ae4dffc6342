"""A bounded load generator for loopback: keep-alive HTTP/1.1 connections, one request each.

Deliberately small, so that on two cores the server and not this side is the limit: requests are
bytes that were made before the clock starts.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import numpy as np
import uvloop

T = TypeVar("T")


class Load(NamedTuple):
    """What a run saw: requests answered with 200, the seconds they took, latencies in ms."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    p999_ms: float

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds


class Connection:
    """One keep-alive connection. `exchange` raises RuntimeError for an answer other than 200."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, url: str) -> "Connection":
        """Open one."""
        address = urlsplit(url)
        return cls(*await asyncio.open_connection(address.hostname, address.port))

    async def exchange(self, request: bytes) -> bytes:
        """Return the body of the answer to a request."""
        status, body = await self.answer(request)
        if status != 200:
            raise RuntimeError(f"{status} {body.decode(errors='replace')}")
        return body

    async def answer(self, request: bytes) -> tuple[int, bytes]:
        """Return the status and the body of the answer to a request."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return int(head[9:12]), await self._reader.readexactly(length)

    def close(self) -> None:
        """Close it."""
        self._writer.close()


def post_request(path: str, body: bytes, content_type: str = "application/json") -> bytes:
    """Return the bytes of one POST."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def running(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on a fast event loop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def load_of(latencies: Sequence[float], seconds: float) -> Load:
    """Percentiles of latencies in seconds."""
    ms = np.percentile(np.array(latencies) * 1e3, [50, 99, 99.9])
    return Load(len(latencies), seconds, *map(float, ms))


def post_all(url: str, requests: Sequence[bytes], connections: int) -> Load:
    """Send each request once over several connections, each waiting for its answer."""
    return running(_post_all(url, requests, connections))


async def _post_all(url: str, requests: Sequence[bytes], connections: int) -> Load:
    latencies: list[float] = []
    opened = [await Connection.to(url) for _ in range(connections)]
    start = time.perf_counter()
    waiting = iter(requests)
    async with asyncio.TaskGroup() as group:
        for connection in opened:
            group.create_task(_work(connection, waiting, latencies))
    seconds = time.perf_counter() - start
    for connection in opened:
        connection.close()
    return load_of(latencies, seconds)


async def _work(connection: Connection, waiting: Iterator[bytes], latencies: list[float]) -> None:
    for request in waiting:
        start = time.perf_counter()
        await connection.exchange(request)
        latencies.append(time.perf_counter() - start)


def saturate(
    url: str, requests: Sequence[bytes], connections: int, stop: Callable[[], bool]
) -> int:
    """Send requests repeatedly until stopped; return how many were answered."""

    def endless() -> Iterator[bytes]:
        while True:
            for request in requests:
                if stop():
                    return
                yield request

    latencies: list[float] = []

    async def work() -> None:
        waiting = endless()
        async with asyncio.TaskGroup() as group:
            for _ in range(connections):
                group.create_task(_work(await Connection.to(url), waiting, latencies))

    running(work())
    return len(latencies)


def post_at_rate(url: str, requests: Sequence[bytes], per_second: float, connections: int) -> Load:
    """Send request i at second i / per_second, whatever became of those before.

    A latency is counted from when the request should have been sent: a connection that still
    waits for an answer makes those behind it late, and that is part of theirs.
    """
    return running(_post_at_rate(url, requests, per_second, connections))


async def _post_at_rate(
    url: str, requests: Sequence[bytes], per_second: float, connections: int
) -> Load:
    latencies: list[float] = []
    opened = [await Connection.to(url) for _ in range(connections)]
    start = time.perf_counter() + 0.05

    async def work(first: int) -> None:
        for i in range(first, len(requests), connections):
            due = start + i / per_second
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            await opened[first].exchange(requests[i])
            latencies.append(time.perf_counter() - due)

    async with asyncio.TaskGroup() as group:
        for first in range(connections):
            group.create_task(work(first))
    seconds = time.perf_counter() - start
    for connection in opened:
        connection.close()
    return load_of(latencies, seconds)
