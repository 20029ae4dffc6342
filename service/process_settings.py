"""Settings of this process: threads of matrix products, collections of garbage, and free memory.

A replay is exact only with the same number of threads. Collections of cyclic garbage stop all
threads, and visit every young object each time some hundred have been made: a group of 32 samples
makes thousands, nearly all of which are freed without them. The C library's allocator keeps memory
although nothing uses it any more.
"""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import threadpoolctl


class Threads:
    """Sets the number of threads of the BLAS library in this process."""

    def __init__(self) -> None:
        self._controller = threadpoolctl.ThreadpoolController()
        self._count = 0  # as last set; 0 before the first call

    def use(self, count: int) -> None:
        """Use `count` threads from now on."""
        if count != self._count:
            self._controller.limit(limits=count, user_api="blas")
            self._count = count

    @contextmanager
    def using(self, count: int) -> Iterator[None]:
        """Use `count` threads within the block, and until another number is set."""
        self.use(count)
        yield


# A collection visits the objects made since the last one, once there are this many.
_YOUNG_OBJECTS = 10_000


def begin_serving() -> None:
    """Collect garbage now; from here on collect rarely, and skip what is alive now.

    A full collection would otherwise visit all that lives until the process ends, and stop all
    threads for a tenth of a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])


def give_back_memory() -> None:
    """Give memory that is free back to the system; for gigabytes it takes tenths of a second."""
    with suppress(OSError, AttributeError):  # another C library has no such function
        ctypes.CDLL(None).malloc_trim(0)
