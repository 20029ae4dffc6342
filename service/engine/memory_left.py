"""The memory that the process may still take, as counted by the system."""

import contextlib
import ctypes
import time

from wolfstream.service.settings import Settings

# An eighth of all memory is left for the requests that a recovered server will get.
_LEFT = 8
# For how long a look at the system's figures is good.
_SECONDS = 0.05


class MemoryLeft:
    """Tells when memory is so scarce that no more of a model is to be recovered."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # When the system was asked last, by the monotonic clock, and what came of it.
        self._looked, self._scarce = float("-inf"), False

    def is_scarce(self) -> bool:
        """Return whether memory was scarce at the last look, which is recent; on any thread."""
        now = time.monotonic()
        if now - self._looked >= _SECONDS:
            self._scarce = self._look() and _gives_back() and self._look()
            self._looked = now
        return self._scarce

    def _look(self) -> bool:
        return self._settings.left_bytes() < self._settings.most_bytes // _LEFT


def _gives_back() -> bool:
    """Let the allocator return free memory to the system; return True, to go on in a condition."""
    with contextlib.suppress(OSError, AttributeError):  # another libc
        ctypes.CDLL(None).malloc_trim(0)
    return True
