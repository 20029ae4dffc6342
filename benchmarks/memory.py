"""How much memory a piece of work takes: the peak of this process above where it began.

The kernel's own counter of resident memory, set back first, so that what loading and compiling
took before does not count. getrusage's ru_maxrss is the same counter, but a new process begins
with that of the process that started it. Linux only.
"""

import gc
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def begin() -> int:
    """Set the peak back; returns the bytes resident now."""
    gc.collect()
    _CLEAR.write_text("5")
    return _status("VmRSS")


def peak() -> int:
    """Return the most bytes resident since `begin`."""
    return _status("VmHWM")


def _status(field: str) -> int:
    lines = _STATUS.read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))
