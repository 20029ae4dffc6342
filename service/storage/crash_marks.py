"""Marks in the data directory by which a start learns how the last process ended.

A process that is killed leaves no message. It leaves `DIR/running`, so the next one can report how
much memory the last one used, and a trace if it crashed. `DIR/replays` says which replay it was
in. None of these files is fsynced: they must survive the process, not a loss of power.
"""

import contextlib
import faulthandler
import hashlib
import logging
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from wolfstream.service.errors import NotReady, StartupError
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


# Its content changes with each boot; only Linux has it.
_BOOT = Path("/proc/sys/kernel/random/boot_id")

_SLOT = struct.Struct("<QQ8s")


class ReplayMarks:
    """Marks of running replays, which tell the next process where an earlier one crashed.

    A block that needs more memory than the machine has would crash the process at each start. The
    file has 24 bytes for each model's number: the sequence after which its block begins, the number
    of processes that began this block, and a digest. It is written before each block.

    Marks from before the last boot do not count, because a loss of power may bring back marks of
    replays that had ended. If the file cannot be written, as on a full disk, models are replayed
    anyway. For one model, the marks are used by one thread at a time.
    """

    def __init__(self, path: Path, read_only: bool = False, max_crashes: int = 2) -> None:
        """Open the marks of a directory.

        Args:
            path: the path of the file, which is created if it is missing.
            read_only: read the file if there is one, and write nothing.
            max_crashes: after this many crashes at one sequence, the model is left out.

        Raises StartupError.
        """
        self.max_crashes = max_crashes
        # model -> mark that earlier processes left: (sequence, processes that began there).
        self._earlier: dict[int, tuple[int, int]] = {}
        # model -> running replay: (sequence, processes that began there before this one).
        self._under_way: dict[int, tuple[int, int]] = {}
        self._stopped = False
        # Guards `_under_way` and writing: `stop` runs on another thread than the replays.
        self._writing = threading.Lock()
        self._path, self._failed = path, False
        self._boot = _BOOT.read_bytes() if _BOOT.exists() else b""
        try:
            if not read_only:
                make_private(path)
            readable = path if path.exists() else Path(os.devnull)
            self._file = os.open(readable, os.O_RDONLY if read_only else os.O_RDWR)
        except OSError as error:
            raise StartupError(
                f"{path} cannot be opened: {error.strerror}; check its permissions"
            ) from None

    def begin(self, model: int, after: int) -> int:
        """Mark that the block after a sequence is replayed next.

        Returns the number of processes that crashed in this block before. Raises NotReady if this
        process is stopping.
        """
        self.check()
        if model not in self._earlier:
            self._earlier[model] = self._read(model)
        marked_after, times = self._earlier[model]
        crashes = times if marked_after == after else 0
        with self._writing:
            self._under_way[model] = after, crashes
            self._write(model, self._slot(model, after, crashes + 1))
        return crashes

    def leave_out(self, model: int, after: int, crashes: int) -> None:
        """Mark a model as if `crashes` processes had crashed at a block. Raises OSError."""
        os.pwrite(self._file, self._slot(model, after, crashes), model * _SLOT.size)

    def crashes(self, model: int) -> int:
        """Return the number of processes that crashed at the marked block of a model."""
        return self._read(model)[1]

    def end(self, model: int) -> None:
        """Mark that a model was replayed to the end of its log."""
        with self._writing:
            self._under_way.pop(model, None)
            self._write(model, bytes(_SLOT.size))

    def check(self) -> None:
        """Raise NotReady if the process is stopping: no further block is replayed."""
        if self._stopped:
            raise NotReady("the server stops, and replays nothing more")

    def stop(self) -> None:
        """Mark that no running replay crashed the process, and write no marks after that."""
        with self._writing:
            for model, (after, crashes) in self._under_way.items():
                self._write(model, self._slot(model, after, crashes))
            self._stopped = True

    def _read(self, model: int) -> tuple[int, int]:
        """Return a model's mark, (sequence, times); zeros without a complete mark of this boot."""
        slot = os.pread(self._file, _SLOT.size, model * _SLOT.size)
        if len(slot) == _SLOT.size:
            after, times, _ = _SLOT.unpack(slot)
            if slot == self._slot(model, after, times):
                return after, times
        return 0, 0

    def _slot(self, model: int, after: int, times: int) -> bytes:
        content = struct.pack("<QQQ", model, after, times) + self._boot
        return _SLOT.pack(after, times, hashlib.blake2b(content, digest_size=8).digest())

    def _write(self, model: int, slot: bytes) -> None:
        if self._stopped:
            return
        try:
            os.pwrite(self._file, slot, model * _SLOT.size)
        except OSError as error:
            if not self._failed:  # log it once: the next block would fail in the same way
                self._failed = True
                logger.error(
                    "replay marks not written, a model that crashes the server may do so again: "
                    "path=%s error=%s",
                    self._path,
                    error,
                )

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
