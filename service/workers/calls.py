"""A worker's calls to the leader, and the futures that wait for their answers."""

import asyncio
from typing import Any

from wolfstream.service.errors import NotReady
from wolfstream.service.workers.channel import Channel, Kind
from wolfstream.service.workers.messages import refusal


class Calls:
    """Makes calls over one channel and numbers them. Used on the event loop."""

    def __init__(self) -> None:
        self.channel: Channel | None = None
        self._loop = asyncio.get_running_loop()
        self._last = 0
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._durable: dict[int, asyncio.Future[Any]] = {}

    def begin(
        self, kind: Kind, *given: Any, durable: "asyncio.Future[Any] | None" = None
    ) -> "asyncio.Future[Any]":
        """Make a call; the future it returns is the answer, or raises the refusal.

        durable: set before the answer, as soon as the samples of the call are on disk.
        Raises NotReady without a channel.
        """
        if self.channel is None:
            raise NotReady("the server is starting")
        self._last += 1
        answer = self._answers[self._last] = self._loop.create_future()
        if durable is not None:
            self._durable[self._last] = durable
        self.channel.send(kind, self._last, *given)
        return answer

    async def answer(self, kind: Kind, *given: Any) -> Any:
        """Make a call and return its answer. Raises the refusal, and NotReady without a channel."""
        return await self.begin(kind, *given)

    def answered(self, kind: Kind, call: int, *given: Any) -> None:
        """Deliver the leader's answer to a call. The client that waited for it may be gone."""
        if kind == Kind.DURABLE:
            durable = self._durable.pop(call, None)
            if durable is not None and not durable.done():
                durable.set_result(*given)
            return
        self._durable.pop(call, None)
        answer = self._answers.pop(call, None)
        if answer is None or answer.done():
            return
        if kind == Kind.REFUSED:
            answer.set_exception(refusal(list(given)))
        else:
            answer.set_result(*given)
