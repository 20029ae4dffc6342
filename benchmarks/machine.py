"""What figures are measured on."""

import os
import platform
from collections.abc import Mapping
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any


def facts() -> dict[str, Any]:
    """Day, processor, cores, versions, and how many processes want to run."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        processor = names[0].partition(":")[2].strip() if names else processor
    versions = {name: metadata.version(name) for name in ("numpy", "numba")}
    return {
        "day": str(date.today()),
        "processor": processor,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        **versions,
    }


def machine_line(of: Mapping[str, Any] | None = None) -> str:
    """Return facts, or those of now, in one line for the top of a table."""
    of = facts() if of is None else of
    versions = ", ".join(f"{name} {of[name]}" for name in ("numpy", "numba"))
    return f"{of['day']}, {of['processor']}, {of['cores']} cores, Python {of['python']}, {versions}"
