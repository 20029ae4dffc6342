"""A clock for how old something is: it also counts while the machine is suspended.

`time.monotonic` stands still meanwhile, so what was an hour old would seem to be fresh. Timers do
not need this clock: nothing is waited for in a machine that is suspended.
"""

import time

# Where a system has no such clock, its monotonic clock has to do.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


def boot_seconds() -> float:
    """Return the seconds since the machine was started, in all of its processes the same."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)
