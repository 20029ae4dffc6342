"""The events of one model, sent to all who listen.

An event is encoded once. The last ones are kept, so that a listener that has lost its connection
for some seconds gets what it missed; one that reads too slowly misses the oldest, and delays no
other.
"""

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

# Bounds on the events that are kept and on their bytes; the newest is always kept.
_MOST_EVENTS = 30
_MOST_BYTES = 1 << 17


class _Event(NamedTuple):
    number: int
    content: bytes


class Channel:
    """The channel of one model, used on the event loop."""

    def __init__(self) -> None:
        self.listeners = 0
        self._name = secrets.token_hex(4)
        self._number = 0
        self._events: deque[_Event] = deque(maxlen=_MOST_EVENTS)
        self._bytes = 0
        self._news = asyncio.Event()
        self._closed = False

    def publish(self, kind: str, data: dict[str, Any]) -> None:
        """Send an event to all listeners, in the format of Server-Sent Events."""
        self._number += 1
        head = f"id: {self._name}-{self._number}\nevent: {kind}\ndata: ".encode()
        if len(self._events) == _MOST_EVENTS:
            self._forget_oldest()
        content = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        event = _Event(self._number, head + content.encode() + b"\n\n")
        self._events.append(event)
        self._bytes += len(event.content)
        while self._bytes > _MOST_BYTES and len(self._events) > 1:
            self._forget_oldest()
        self._wake()

    def close(self, reason: str) -> None:
        """Send all listeners a last event that says why it is the last: `stopping` or `deleted`."""
        if not self._closed:
            self.publish("end", {"reason": reason})
            self._closed = True
            self._wake()

    async def listen(self, last_id: str | None) -> AsyncIterator[bytes]:
        """Yield the newest event, or those that the listener missed, and then new ones.

        last_id: of the last event that the listener has received; None for a new listener. Where
            some of the events after it are no longer kept, it begins with the newest.
        """
        self.listeners += 1
        try:
            known = self._known(last_id)
            while True:
                for event in [event for event in self._events if event.number > known]:
                    known = event.number
                    yield event.content
                if self._events and self._events[-1].number > known:
                    continue  # more came while those were sent
                if self._closed:
                    return
                await self._news.wait()
        finally:
            self.listeners -= 1

    def _known(self, last_id: str | None) -> int:
        """Return the number of the last event that a listener need not be sent."""
        name, _, number = (last_id or "").partition("-")
        if name == self._name and number.isascii() and number.isdecimal():
            known = int(number[:18])
            if self._events and self._events[0].number <= known + 1 and known <= self._number:
                return known
        return self._number - 1

    def _forget_oldest(self) -> None:
        self._bytes -= len(self._events.popleft().content)

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
