"""The high-water mark: which sequence of each model was durable, kept outside the journal.

A journal whose last commits are lost looks like one that ended earlier. The mark shows the
difference: `DIR/high-water` has 16 bytes for each model's number, a sequence and a digest. A commit
is marked after its fsync and before its acknowledgement, without an fsync of the mark's own, so
the mark is never ahead of what was durable. It never goes back. It survives the end of the process.
After a loss of power it may be as old as the last snapshot, with which it is fsynced: then a tail
that was lost after that is not noticed.
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
    """The marks of one directory; any thread may use them.

    path: of the file, which is made where it is missing. read_only: reads one that is there.
    Raises StartupError.
    """

    def __init__(self, path: Path, read_only: bool = False) -> None:
        self._path = path
        self._failed = False
        # Of the models that were noted here; predictions, which are many, leave it as it was.
        self._noted: dict[int, int] = {}
        # Around looking at a mark and raising it: two threads of a replica raise marks.
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

    def note(self, model: int, sequence: int) -> None:
        """Mark that all of a model up to a sequence is durable; a failure is logged."""
        assert self._file is not None
        if self._noted.get(model, -1) >= sequence:
            return
        with self._raising:
            try:
                if self.of(model) < sequence:
                    os.pwrite(self._file, _slot(model, sequence), model * _SLOT.size)
            except OSError as error:
                self._log(error)
            else:
                self._noted[model] = sequence

    def of(self, model: int) -> int:
        """Return the marked sequence of a model; 0 without a whole mark."""
        if self._file is None:
            return 0
        slot = os.pread(self._file, _SLOT.size, model * _SLOT.size)
        sequence = int.from_bytes(slot[:8], "little")
        return sequence if slot == _slot(model, sequence) else 0

    def last(self) -> int:
        """Return the highest number of a model that has a whole mark; 0 without any."""
        if self._file is None:
            return 0
        models = range(os.fstat(self._file).st_size // _SLOT.size, 0, -1)
        return next((model for model in models if self.of(model)), 0)

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
                "%s cannot be written: %s; a lost commit may go unnoticed", self._path, error
            )


def _slot(model: int, sequence: int) -> bytes:
    digest = hashlib.blake2b(struct.pack("<QQ", model, sequence), digest_size=8).digest()
    return _SLOT.pack(sequence, digest)
