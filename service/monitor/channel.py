"""The events of one model, for all its listeners.

An event is encoded once. The last events are stored, so that a listener whose connection was lost
for some seconds gets what it missed. A listener that reads too slowly misses the oldest, and delays
no other.
"""

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

# Bounds on the stored events and their bytes; the newest is always stored.
_MAX_EVENTS = 30
_MAX_BYTES = 1 << 17


class _Event(NamedTuple):
    """An event."""

    number: int
    content: bytes  # as it is sent


class EventChannel:
    """The channel of one model. Used on the event loop.

    Attributes:
        listeners: how many there are.
    """

    def __init__(self) -> None:
        """Begin without events."""
        self.listeners = 0
        self._name = secrets.token_hex(4)  # in ids of events, which another channel does not know
        self._number = 0  # of the last event
        self._events: deque[_Event] = deque(maxlen=_MAX_EVENTS)
        self._bytes = 0  # of the stored events
        self._news = asyncio.Event()  # set, and replaced, with each event
        self._closed = False

    def publish(self, kind: str, data: dict[str, Any]) -> None:
        """Send an event to all listeners, in the format of Server-Sent Events."""
        self._number += 1
        head = f"id: {self._name}-{self._number}\nevent: {kind}\ndata: ".encode()
        if len(self._events) == _MAX_EVENTS:
            self._forget_oldest()
        content = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        event = _Event(self._number, head + content.encode() + b"\n\n")
        self._events.append(event)
        self._bytes += len(event.content)
        while self._bytes > _MAX_BYTES and len(self._events) > 1:
            self._forget_oldest()
        self._wake()

    def close(self, reason: str) -> None:
        """Send all listeners a last event with its reason: `stopping` or `deleted`."""
        if not self._closed:
            self.publish("end", {"reason": reason})
            self._closed = True
            self._wake()

    async def listen(self, last_id: str | None) -> AsyncIterator[bytes]:
        """Yield the newest event, or those that the listener missed, and then new ones.

        Args:
            last_id: of the last event that the listener has received; None for a new listener. If
                events after it are no longer stored, the listener gets the newest.
        """
        self.listeners += 1
        try:
            last = self._last_received(last_id)
            while True:
                for event in [event for event in self._events if event.number > last]:
                    last = event.number
                    yield event.content
                if self._events and self._events[-1].number > last:
                    continue  # more came while those were sent
                if self._closed:
                    return
                await self._news.wait()
        finally:
            self.listeners -= 1

    def _last_received(self, last_id: str | None) -> int:
        """Return the number of the last event that a listener need not be sent."""
        name, _, digits = (last_id or "").partition("-")
        if name == self._name and digits.isascii() and digits.isdecimal():
            number = int(digits[:18])
            if self._events and self._events[0].number <= number + 1 and number <= self._number:
                return number
        return self._number - 1

    def _forget_oldest(self) -> None:
        self._bytes -= len(self._events.popleft().content)

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
