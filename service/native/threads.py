"""The number of threads of a matrix product. A replay is exact only with the same number."""

from collections.abc import Iterator
from contextlib import contextmanager

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
