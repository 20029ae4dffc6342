"""Where a snapshot was made: what the bits of a replay depend on besides the journal.

A replay gives the same bits where the numerics (`spec.stored.NUMERICS`), numpy, numba and the kind
of the processor are those that the samples were learned with. Elsewhere a sum may be rounded in
another order.
"""

import functools
import platform
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from wolfstream.service.spec.stored import NUMERICS

_CPUINFO = Path("/proc/cpuinfo")


@functools.cache
def present_origin() -> Mapping[str, Any]:
    """Return what snapshots of this process record about where they were made."""
    return {
        "numerics": NUMERICS,
        "numpy": version("numpy"),
        "numba": version("numba"),
        "processor": _processor(),
    }


def difference(made: Mapping[str, Any] | None) -> str:
    """Return what has changed since a snapshot was made; empty if nothing has, or it is unknown.

    made: what the snapshot recorded.
    """
    if made is None:
        return ""
    return ", ".join(
        f"{name} {made.get(name)} (now {value})"
        for name, value in present_origin().items()
        if made.get(name) != value
    )


def _processor() -> str:
    """Return the system's name for the kind of the processor."""
    with suppress(OSError):
        for line in _CPUINFO.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "CPU part"):
                return f"{platform.machine()} {value.strip()}"
    return platform.machine()
