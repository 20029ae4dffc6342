"""What the figures were measured on."""

import os
import platform
from datetime import date
from importlib import metadata
from pathlib import Path


def machine_line() -> str:
    """Date, processor, cores, Python and numpy, in one line for the top of a table."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].partition(":")[2].strip() if names else cpu
    return (
        f"{date.today()}, {cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"numpy {metadata.version('numpy')}, numba {metadata.version('numba')}"
    )
