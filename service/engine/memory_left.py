"""Whether the process has memory left, as the system counts it."""

import contextlib
import ctypes
import time

from wolfstream.service.settings import Settings

# Of all memory, an eighth is left alone, for requests to come to a server that is recovered.
_LEFT = 8
_SECONDS = 0.05


class MemoryLeft:
    """Tells whether so little memory is left that no more of a model may be recovered."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._looked, self._scarce = float("-inf"), False

    def is_scarce(self) -> bool:
        """Return whether that was so at the last look, which is not long ago; on any thread."""
        now = time.monotonic()
        if now - self._looked >= _SECONDS:
            self._scarce = self._look() and _gives_back() and self._look()
            self._looked = now
        return self._scarce

    def _look(self) -> bool:
        return self._settings.left_bytes() < self._settings.most_bytes // _LEFT


def _gives_back() -> bool:
    """Have the allocator give back what is free."""
    with contextlib.suppress(OSError, AttributeError):  # another libc
        ctypes.CDLL(None).malloc_trim(0)
    return True
