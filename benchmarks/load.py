"""A bounded load generator for loopback: keep-alive HTTP/1.1 connections, one request each.

Deliberately small, so that on two cores the server and not this side is the limit.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
import uvloop


class Load(NamedTuple):
    """What a run saw: requests answered with 200, the seconds they took, latencies in ms."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds


def post_request(path: str, body: bytes, content_type: str = "application/json") -> bytes:
    """The bytes of one POST."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def post_all(url: str, requests: Sequence[bytes], connections: int) -> Load:
    """Send each request once over so many connections. Raises where one is not answered 200."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_post_all(url, requests, connections))


async def _post_all(url: str, requests: Sequence[bytes], connections: int) -> Load:
    address = urlsplit(url)
    latencies: list[float] = []
    waiting = iter(requests)

    async def work() -> None:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        for request in waiting:
            start = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            body = await reader.readexactly(length)
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"{head.decode()}{body.decode(errors='replace')}")
            latencies.append(time.perf_counter() - start)
        writer.close()

    start = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(work())
    seconds = time.perf_counter() - start
    p50, p99 = np.percentile(np.array(latencies) * 1e3, [50, 99])
    return Load(len(latencies), seconds, float(p50), float(p99))
