"""How many threads a matrix product uses: part of what makes replay exact."""

from collections.abc import Iterator
from contextlib import contextmanager

import threadpoolctl


class Threads:
    """Sets the thread count of the BLAS library of this process, when it changes."""

    def __init__(self) -> None:
        self._controller = threadpoolctl.ThreadpoolController()
        self._count = 0

    def use(self, count: int) -> None:
        """From now on, `count` threads."""
        if count != self._count:
            self._controller.limit(limits=count, user_api="blas")
            self._count = count

    @contextmanager
    def using(self, count: int) -> Iterator[None]:
        """Within, and until another count is set, `count` threads."""
        self.use(count)
        yield
