"""A worker's calls to the leader, and the futures that wait for the replies."""

import asyncio
from typing import Any

from wolfstream.service.cluster.channel import Channel, FrameKind, refusal_from_plain
from wolfstream.service.errors import NotReady


class Calls:
    """Makes numbered calls over one channel. Used on the event loop.

    Attributes:
        channel: to the leader; None before the worker is connected.
    """

    def __init__(self) -> None:
        """Begin without a channel."""
        self.channel: Channel | None = None
        self._loop = asyncio.get_running_loop()
        self._last = 0  # number of the last call
        # Number of a call -> future of its reply, and the future that is set once its samples are
        # durable.
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._durable: dict[int, asyncio.Future[Any]] = {}

    def begin(
        self, kind: FrameKind, *arguments: Any, durable: "asyncio.Future[Any] | None" = None
    ) -> "asyncio.Future[Any]":
        """Make a call; return a future of the reply. A refusal is the future's exception.

        Args:
            kind: kind of the call.
            arguments: its arguments, as plain data.
            durable: set before the reply, as soon as the samples of the call are on disk.

        Raises NotReady without a channel.
        """
        if self.channel is None:
            raise NotReady("the server is starting")
        self._last += 1
        reply = self._replies[self._last] = self._loop.create_future()
        if durable is not None:
            self._durable[self._last] = durable
        self.channel.send(kind, self._last, *arguments)
        return reply

    async def answer(self, kind: FrameKind, *arguments: Any) -> Any:
        """Make a call, and return the reply.

        Raises the Refusal that the leader replies, and NotReady without a channel.
        """
        return await self.begin(kind, *arguments)

    def take_reply(self, kind: FrameKind, call: int, *content: Any) -> None:
        """Deliver a reply to the caller, if it still waits.

        Args:
            kind: ANSWER, DURABLE or REFUSED.
            call: number of the call.
            content: content of the reply, as plain data.
        """
        if kind == FrameKind.DURABLE:
            durable = self._durable.pop(call, None)
            if durable is not None and not durable.done():
                durable.set_result(*content)
            return
        self._durable.pop(call, None)
        reply = self._replies.pop(call, None)
        if reply is None or reply.done():
            return
        if kind == FrameKind.REFUSED:
            reply.set_exception(refusal_from_plain(list(content)))
        else:
            reply.set_result(*content)
