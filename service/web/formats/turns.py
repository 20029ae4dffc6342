"""Limits work of some milliseconds to one piece in each pass of the event loop.

A pass serves every connection that has something to do. If fifty streams each had a frame that
takes twenty milliseconds to decode, one pass would take a second, and a health probe that came
just after its beginning would wait as long.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


async def in_turn(work: Callable[[], T]) -> T:
    """Return the result of the work, which waits for its turn among the calls of `in_turn`."""
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        result = work()
        await asyncio.sleep(0)  # the next turn comes in the next pass
    return result
