"""What a process leaves that is killed or crashes: `DIR/running`, and a trace of the crash.

A process that is killed leaves no message. It leaves `DIR/running`, so the next one can report how
much memory the last one used. The file is not fsynced: it must survive the process, not a loss of
power.
"""

import contextlib
import faulthandler
import logging
import threading
from collections.abc import Callable
from pathlib import Path

from wolfstream.service.storage.directories import make_private

logger = logging.getLogger(__name__)

_MAX_CHARACTERS = 2000


def last_crash(path: Path) -> str:
    """Return and log the stack of the last process if it crashed, otherwise ""."""
    text = ""
    with contextlib.suppress(OSError), path.open(errors="replace") as file:
        text = file.read(_MAX_CHARACTERS)
    if text:
        logger.error("the last process crashed: trace=%s", text)
    return text


def watch_for_crashes(path: Path) -> None:
    """Make this process write its stack to the file if it crashes; discard the last process's."""
    try:
        make_private(path)
        # Never closed: the handler writes to its file descriptor.
        file = path.open("w")
        faulthandler.enable(file, all_threads=False)
    except OSError as error:
        logger.error("crashes will not be traced: path=%s error=%s", path, error)


_SECONDS = 0.2  # between two measurements
# A process that used three quarters of its memory was probably killed for want of more.
_SUSPECT_SHARE = 3 / 4


class ProcessMark:
    """The mark of this process, from its creation until `end`."""

    def __init__(self, path: Path, max_bytes: int, used_bytes: Callable[[], int]) -> None:
        """Read the last process's mark, and start writing this one's.

        Args:
            path: the path of the file.
            max_bytes: the memory that this process may use.
            used_bytes: returns the memory that it uses now.
        """
        self._path, self._max_bytes, self._used_bytes = path, max_bytes, used_bytes
        self._ended = threading.Event()
        self._last_process = _read(path)  # (bytes used, bytes allowed)
        with contextlib.suppress(OSError):
            make_private(path)
        threading.Thread(target=self._write_changes, name="memory", daemon=True).start()

    def report(self) -> None:
        """Log a warning if the last process was probably killed for want of memory."""
        used, allowed = self._last_process
        if used and used >= _SUSPECT_SHARE * allowed:
            logger.warning(
                "the last process was probably killed for want of memory: used_mb=%d max_mb=%d. "
                "Nothing acknowledged is lost. Give the server more memory, or DELETE models that "
                "are not used",
                used >> 20,
                allowed >> 20,
            )

    def end(self) -> None:
        """Delete the mark: the process stops normally."""
        self._ended.set()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _write_changes(self) -> None:
        """Write the memory used whenever it has changed by more than 1/128 of the limit."""
        written = 0
        while not self._ended.is_set():
            used = self._used_bytes()
            if abs(used - written) > self._max_bytes >> 7:
                with contextlib.suppress(OSError):
                    self._path.write_text(f"{used} {self._max_bytes}\n")
                    written = used
            self._ended.wait(_SECONDS)


def _read(path: Path) -> tuple[int, int]:
    """Return (bytes used, bytes allowed) of the last process; zeros if it stopped normally."""
    with contextlib.suppress(OSError, ValueError):
        used, allowed = path.read_text(errors="replace").split()
        return int(used), int(allowed)
    return 0, 0
