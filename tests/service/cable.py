"""Ways to ports of this machine that can be cut, as a network fails: in silence."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

_PIECE_BYTES = 1 << 16


class Cable:
    """Carries connections to some ports, from a thread of its own, until `close`.

    targets: the ports. ports: those at which each of them is reached through the cable, in the same
    order.

    While it is cut, nothing comes through in that direction, and nobody is told: connections stay,
    new ones are accepted. What was sent meanwhile arrives once it is mended.
    """

    def __init__(self, targets: Sequence[int]) -> None:
        self.ports = list[int]()
        self._servers = list[asyncio.Server]()
        self._loop = asyncio.new_event_loop()
        # What is sent to the ports passes, and what they answer.
        self._there, self._back = asyncio.Event(), asyncio.Event()
        self._there.set()
        self._back.set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cable", daemon=True)
        self._thread.start()
        for target in targets:
            self.ports.append(self._run(self._listen(target)))

    def cut(self, *, there: bool = True, back: bool = True) -> None:
        """Let nothing through from now on: there, to the ports, or back, or both."""
        for direction, is_cut in ((self._there, there), (self._back, back)):
            if is_cut:
                self._loop.call_soon_threadsafe(direction.clear)

    def mend(self) -> None:
        """Let all through again."""
        for direction in (self._there, self._back):
            self._loop.call_soon_threadsafe(direction.set)

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
            with contextlib.suppress(OSError), _closed(writer):
                await self._there.wait()
                back, there = await asyncio.open_connection("127.0.0.1", target)
                with _closed(there):
                    await _until_one_ends(
                        self._pump(reader, there, self._there),
                        self._pump(back, writer, self._back),
                    )

        server = await asyncio.start_server(carry, "127.0.0.1", 0)
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passes: asyncio.Event
    ) -> None:
        """Carry one direction to its end."""
        while piece := await reader.read(_PIECE_BYTES):
            await passes.wait()
            writer.write(piece)
            await writer.drain()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        # A connection that is being accepted has no owner yet who would close it.
        await asyncio.sleep(0.05)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def _closed(writer: asyncio.StreamWriter) -> Iterator[None]:
    """Close a connection in the end; after an exception nothing more is sent."""
    try:
        yield
    except BaseException:
        writer.transport.abort()  # `close` waits for clients that do not read
        raise
    finally:
        writer.close()


async def _until_one_ends(*directions: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.ensure_future(direction) for direction in directions]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
