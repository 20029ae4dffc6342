"""The memory that the C library's allocator keeps although nothing uses it any more."""

import ctypes
from contextlib import suppress


def give_back_memory() -> None:
    """Give memory that is free back to the system; for gigabytes it takes tenths of a second."""
    with suppress(OSError, AttributeError):  # another C library has no such function
        ctypes.CDLL(None).malloc_trim(0)
