"""High-water marks: the sequence up to which each model was durable, kept outside the journal.

A journal that has lost its last commits looks like one that ended earlier; the mark shows the
difference. The file `DIR/high-water` has 16 bytes for each model's number: a sequence and a digest.
A commit is marked after its fsync and before its acknowledgement, so the mark is never ahead of
what was durable, and it never decreases.

The file is not fsynced with each commit. It survives the end of the process, but after a loss of
power it may be as old as the last snapshot, which fsyncs it: the loss of later commits goes
unnoticed.
"""

import hashlib
import logging
import os
import struct
import threading
from pathlib import Path

from wolfstream.service.errors import StartupError
from wolfstream.service.storage.directories import make_private

logger = logging.getLogger(__name__)

_SLOT = struct.Struct("<Q8s")


class HighWater:
    """The marks of one directory; any thread may use them."""

    def __init__(self, path: Path, read_only: bool = False) -> None:
        """Open the marks of a directory.

        Args:
            path: the path of the file, which is created if it is missing.
            read_only: read the file if there is one, and write nothing.

        Raises StartupError.
        """
        self._path = path
        self._failed = False  # whether a failure was logged, which happens once
        # model -> sequence marked by this process; spares most calls, which do not raise it.
        self._marked: dict[int, int] = {}
        # Guards comparing and raising a mark, which two threads of a replica do.
        self._raising = threading.Lock()
        self._file: int | None = None
        try:
            if not read_only:
                make_private(path)
            if path.exists():
                self._file = os.open(path, os.O_RDONLY if read_only else os.O_RDWR)
        except OSError as error:
            raise StartupError(
                f"{path} cannot be opened: {error.strerror}; check its permissions"
            ) from None

    def mark(self, model: int, sequence: int) -> None:
        """Record that a model is durable up to a sequence; a failure is logged."""
        assert self._file is not None
        if self._marked.get(model, -1) >= sequence:
            return
        with self._raising:
            try:
                if self.sequence(model) < sequence:
                    os.pwrite(self._file, _slot(model, sequence), model * _SLOT.size)
            except OSError as error:
                self._log(error)
            else:
                self._marked[model] = sequence

    def sequence(self, model: int) -> int:
        """Return the marked sequence of a model; 0 without an intact mark."""
        if self._file is None:
            return 0
        slot = os.pread(self._file, _SLOT.size, model * _SLOT.size)
        sequence = int.from_bytes(slot[:8], "little")
        return sequence if slot == _slot(model, sequence) else 0

    def last_model(self) -> int:
        """Return the highest model number with an intact mark; 0 without any."""
        if self._file is None:
            return 0
        models = range(os.fstat(self._file).st_size // _SLOT.size, 0, -1)
        return next((model for model in models if self.sequence(model)), 0)

    def sync(self) -> None:
        """Make the marks durable; a failure is logged."""
        assert self._file is not None
        try:
            os.fsync(self._file)
        except OSError as error:
            self._log(error)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _log(self, error: OSError) -> None:
        if not self._failed:
            self._failed = True
            logger.error(
                "high-water mark not written, a lost commit may go unnoticed: path=%s error=%s",
                self._path,
                error,
            )


def _slot(model: int, sequence: int) -> bytes:
    digest = hashlib.blake2b(struct.pack("<QQ", model, sequence), digest_size=8).digest()
    return _SLOT.pack(sequence, digest)
