"""Marks of replays that have begun: what a process was replaying when it ended.

A block that takes more memory than there is ends the process, at each start again. The file
`DIR/replays` has 24 bytes for each model's number: after which sequence its replay was, how many
processes have begun it there, and a digest. It is written before each block, without an fsync: it
is needed after the end of a process, not after a loss of power, which may bring back marks of
replays that came to their end; so marks of before the system was started do not count. Where it
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

# Another text each time that the system starts; other systems than Linux have none.
_BOOT = Path("/proc/sys/kernel/random/boot_id")

_SLOT = struct.Struct("<QQ8s")


class ReplayMarks:
    """The marks of one directory. Of one model they are used by one thread at a time.

    read_only: reads what is there. most: see `Replays`. Raises StartupError.
    """

    def __init__(self, path: Path, read_only: bool = False, most: int = 2) -> None:
        self.most = most
        # The marks of before this process, which its own replace.
        self._found: dict[int, tuple[int, int]] = {}
        # The replays that are under way: after which sequence, and how many have begun it before.
        self._under_way: dict[int, tuple[int, int]] = {}
        self._stopped, self._writing = False, threading.Lock()
        self._path, self._failed = path, False
        self._boot = _BOOT.read_bytes() if _BOOT.exists() else b""
        try:
            if not read_only:
                make_private(path)
            there = path if path.exists() else Path(os.devnull)
            self._file = os.open(there, os.O_RDONLY if read_only else os.O_RDWR)
        except OSError as error:
            raise StartupError(
                f"{path} cannot be opened: {error.strerror}; check its permissions"
            ) from None

    def begin(self, model: int, after: int) -> int:
        """Mark that the block after a sequence is begun; how many have begun it before.

        Raises NotReady once the process stops.
        """
        self.check()
        if model not in self._found:
            self._found[model] = self._read(model)
        ended_after, times = self._found[model]
        before = times if ended_after == after else 0
        with self._writing:
            self._under_way[model] = after, before
            self._write(model, self._slot(model, after, before + 1))
        return before

    def leave_out(self, model: int, after: int, times: int) -> None:
        """Mark as if this many processes had ended in a model's replay. Raises OSError."""
        os.pwrite(self._file, self._slot(model, after, times), model * _SLOT.size)

    def ended(self, model: int) -> int:
        """Return how many processes have ended in the replay of a model, at one place."""
        return self._read(model)[1]

    def end(self, model: int) -> None:
        """Mark that a model's replay came to its end."""
        with self._writing:
            self._under_way.pop(model, None)
            self._write(model, bytes(_SLOT.size))

    def check(self) -> None:
        """Raise NotReady once the process stops: no other block is replayed."""
        if self._stopped:
            raise NotReady("the server stops, and replays nothing more")

    def stop(self) -> None:
        """Mark that no replay under way has ended the process, which stops; mark no others."""
        with self._writing:
            for model, (after, before) in self._under_way.items():
                self._write(model, self._slot(model, after, before))
            self._stopped = True

    def _read(self, model: int) -> tuple[int, int]:
        """Return what earlier processes have left: a sequence, and how many times."""
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
            if not self._failed:
                self._failed = True
                logger.error(
                    "%s cannot be written: %s; a model that ends the server may end it again",
                    self._path,
                    error,
                )

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
