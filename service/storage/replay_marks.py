"""Marks of running replays, in the file `DIR/replays`: where a process was when it crashed.

A block that needs more memory than the machine has would crash the process at each start. The file
has 24 bytes for each model's number: the sequence after which its block begins, the number of
processes that began this block, and a digest. It is written before each block.

It is not fsynced: it must survive the process, not a loss of power. Marks from before the last boot
do not count, because a loss of power may bring back marks of replays that had ended. If the file
cannot be written, as on a full disk, models are replayed anyway.
"""

import hashlib
import logging
import os
import struct
import threading
from pathlib import Path

from wolfstream.service.errors import NotReady, StartupError
from wolfstream.service.storage.directories import make_private

logger = logging.getLogger(__name__)

# Its content changes with each boot; only Linux has it.
_BOOT = Path("/proc/sys/kernel/random/boot_id")

_SLOT = struct.Struct("<QQ8s")


class ReplayMarks:
    """`storage.interfaces.Replays` in a file. For one model, used by one thread at a time."""

    def __init__(self, path: Path, read_only: bool = False, max_crashes: int = 2) -> None:
        """Open the marks of a directory.

        Args:
            path: the path of the file, which is created if it is missing.
            read_only: read the file if there is one, and write nothing.
            max_crashes: see `Replays`.

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
