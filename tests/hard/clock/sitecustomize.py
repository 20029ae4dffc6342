"""Loaded by a server under test to shift its wall clock by the number in a file."""

import os
import time
from pathlib import Path

_time, _time_ns = time.time, time.time_ns
_file = Path(os.environ["CLOCK_OFFSET_FILE"])


def _offset() -> int:
    return int(_file.read_text() or 0)


time.time = lambda: _time() + _offset()
time.time_ns = lambda: _time_ns() + _offset() * 10**9
