"""Limits slow work, of some milliseconds, to one task in each pass of the event loop.

A pass serves all connections that are ready. If fifty streams each had a frame that takes twenty
milliseconds to decode, a pass would take a second, and a health probe that arrived just after its
beginning would wait as long.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


async def in_turn(work: Callable[[], T]) -> T:
    """Run a function once it is its turn among all calls of `in_turn`; return its result."""
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        result = work()
        await asyncio.sleep(0)  # the next turn comes in the next pass
    return result
