"""The mark of a process that runs, with the memory that it takes.

A process that is killed says nothing. The file `DIR/running` is there while one runs, so that the
next one finds what the last one took when it ended without stopping. It is written without an
fsync: what kills a process leaves what it has written.
"""

import contextlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path

from wolfstream.service.storage.directories import make_private

logger = logging.getLogger(__name__)

_SECONDS = 0.2
# A process that took this share of its memory was probably killed for want of more.
_MOST, _OF = 3, 4


class ProcessMark:
    """The mark of this process, from its creation until `end`.

    path: of the file. most: the bytes that the process may take. taken: returns those that it
    takes.
    """

    def __init__(self, path: Path, most: int, taken: Callable[[], int]) -> None:
        self._path, self._most, self._taken = path, most, taken
        self._ended, self._noted = threading.Event(), 0
        self._found = _read(path)
        with contextlib.suppress(OSError):
            make_private(path)
        threading.Thread(target=self._note, name="memory", daemon=True).start()

    def report(self) -> None:
        """Log that the last process was probably killed for want of memory, if it was."""
        taken, most = self._found
        if taken and _OF * taken >= _MOST * most:
            logger.warning(
                "the last process ended without stopping, and took %d of %d MB of memory: it was "
                "probably killed for want of memory. Nothing acknowledged is lost; give the server "
                "more, or DELETE models that are not used",
                taken >> 20,
                most >> 20,
            )

    def end(self) -> None:
        """Take the mark away: the process stops."""
        self._ended.set()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _note(self) -> None:
        """Write what the process takes whenever that has changed by more than a little."""
        while not self._ended.is_set():
            taken = self._taken()
            if abs(taken - self._noted) > self._most >> 7:
                with contextlib.suppress(OSError):
                    self._path.write_text(f"{taken} {self._most}\n")
                    self._noted = taken
            self._ended.wait(_SECONDS)


def _read(path: Path) -> tuple[int, int]:
    """Return what the last process took, and might have taken; zeros if it stopped."""
    with contextlib.suppress(OSError, ValueError):
        taken, most = path.read_text(errors="replace").split()
        return int(taken), int(most)
    return 0, 0
