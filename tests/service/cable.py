"""Ways to ports of this machine that can be cut, as a network fails: in silence."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

_PIECE_BYTES = 1 << 16


class Cable:
    """Carries connections to some ports, from a thread of its own, until `close`.

    targets: the ports. ports: those at which each of them is reached through the cable, in the same
    order.

    While it is cut, nothing comes through in either direction, and nobody is told: connections
    stay, new ones are accepted. What was sent meanwhile arrives once it is mended.
    """

    def __init__(self, targets: Sequence[int]) -> None:
        self.ports = list[int]()
        self._servers = list[asyncio.Server]()
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._whole.set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cable", daemon=True)
        self._thread.start()
        for target in targets:
            self.ports.append(self._run(self._listen(target)))

    def cut(self) -> None:
        """Let nothing through from now on."""
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        """Let all through again."""
        self._loop.call_soon_threadsafe(self._whole.set)

    def close(self) -> None:
        """End all connections and the thread."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self, target: int) -> int:
        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.closing(writer), contextlib.suppress(OSError):
                await self._whole.wait()
                back, there = await asyncio.open_connection("127.0.0.1", target)
                with contextlib.closing(there):
                    await _until_one_ends(self._pump(reader, there), self._pump(back, writer))

        server = await asyncio.start_server(carry, "127.0.0.1", 0)
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one direction to its end."""
        while piece := await reader.read(_PIECE_BYTES):
            await self._whole.wait()
            writer.write(piece)
            await writer.drain()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until_one_ends(*directions: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.ensure_future(direction) for direction in directions]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
