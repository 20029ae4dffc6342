"""Turns on the event loop for work of some milliseconds: one in each pass of the loop.

A pass serves every connection that has something to do. If fifty streams each have a frame whose
decoding takes twenty milliseconds, one pass takes a second, and so does the answer to a probe that
came just after it had begun.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


async def in_turn(work: Callable[[], T]) -> T:
    """Do the work, one such piece in each pass of the loop; return its result."""
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        done = work()
        await asyncio.sleep(0)  # the next one's turn is in the next pass
    return done
