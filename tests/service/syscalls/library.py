"""The layer under libc as a library: it is compiled once, and loaded into this process."""

import ctypes
import errno
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal

SOURCE = Path(__file__).with_name("calls.c")
# In the order of `enum call` in the source.
CALLS = ("write", "sync", "rename", "unlink", "truncate", "read", "open")
Call = Literal["write", "sync", "rename", "unlink", "truncate", "read", "open"]
FOREVER = 1 << 30


@cache
def build_library() -> Path | None:
    """Return the compiled library, or None where there is no compiler of C."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    library = Path(tempfile.gettempdir()) / f"wolfstream-calls-{os.getuid()}-{digest}.so"
    if not library.exists():
        made = library.with_suffix(f".{os.getpid()}")
        flags = ["-O1", "-shared", "-fPIC", "-Wl,-Bsymbolic", "-ldl", "-lpthread"]
        subprocess.run([compiler, str(SOURCE), "-o", str(made), *flags], check=True)
        made.rename(library)
    return library


class Fault:
    """A fault that calls meet. failed: how many have failed so far."""

    def __init__(self, library: ctypes.CDLL, number: int) -> None:
        self._library, self._number = library, number

    @property
    def failed(self) -> int:
        return int(self._library.syscalls_failed(self._number))


class SystemCalls:
    """The system calls of this process, its threads included, on files.

    Libraries that are loaded later call libc directly, so everything that a test runs is imported
    before one of these is made.
    """

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.syscalls_failed.restype = ctypes.c_long
        self._library.syscalls_fail.argtypes = [
            *(ctypes.c_int, ctypes.c_char_p, ctypes.c_long, ctypes.c_long),
            *(ctypes.c_int, ctypes.c_int),
        ]
        self._library.syscalls_record.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        assert self._library.syscalls_hook(), "no library refers to libc"

    @contextmanager
    def failing(
        self,
        call: Call,
        pattern: str,
        error: int = errno.EIO,
        first: int = 1,
        times: int = FOREVER,
        after: bool = False,
    ) -> Iterator[Fault]:
        """Have calls fail within the block.

        pattern: of the paths, as the shell has patterns; of a rename, that of the new name.
        first: the number of the first call that fails, counted from 1.
        times: how many fail, one after another.
        after: whether each is really done before it fails.
        """
        fault = self.fail(call, pattern, error, first, times, after)
        try:
            yield fault
        finally:
            self.heal()

    def fail(
        self,
        call: Call,
        pattern: str,
        error: int = errno.EIO,
        first: int = 1,
        times: int = FOREVER,
        after: bool = False,
    ) -> Fault:
        """Have calls fail until `heal`; see `failing`."""
        number = self._library.syscalls_fail(
            CALLS.index(call), os.fsencode(pattern), first - 1, times, error, after
        )
        assert number >= 0, "too many faults at a time"
        return Fault(self._library, number)

    def heal(self) -> None:
        """Let nothing fail any more."""
        self._library.syscalls_heal()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Have nothing fail within the block; faults are met again after it."""
        self._library.syscalls_pause(1)
        try:
            yield
        finally:
            self._library.syscalls_pause(-1)

    def record(self, root: Path, log: Path) -> None:
        """Record what happens below a directory from now on; `disk.read_records` reads the log."""
        assert self._library.syscalls_record(os.fsencode(root), os.fsencode(log))

    def end_record(self) -> None:
        """Record nothing any more."""
        self._library.syscalls_record(None, None)
