"""What, besides the log, the bits of a replay depend on.

A replay gives the same bits where the numerics (`spec.stored.NUMERICS`), numpy, numba and the kind
of processor are those with which the samples were learned. Elsewhere a sum may be rounded in
another order. Snapshots record these four, so that a difference can be reported.
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
    """Return what snapshots of this process record of their origin."""
    return {
        "numerics": NUMERICS,
        "numpy": version("numpy"),
        "numba": version("numba"),
        "processor": _processor(),
    }


def difference(recorded: Mapping[str, Any] | None) -> str:
    """Return in words what differs from a snapshot's origin; "" if nothing does or it is unknown.

    recorded: the snapshot's origin; None if it recorded none.
    """
    if recorded is None:
        return ""
    return ", ".join(
        f"{name} {recorded.get(name)} (now {value})"
        for name, value in present_origin().items()
        if recorded.get(name) != value
    )


def _processor() -> str:
    """Return the system's name of the processor."""
    with suppress(OSError):
        for line in _CPUINFO.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "CPU part"):
                return f"{platform.machine()} {value.strip()}"
    return platform.machine()
