"""A machine that was suspended: its monotonic clock stood still, what else happened went on."""

import time

import pytest


def suspend(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the clock that counts while a machine is suspended be later by some seconds."""
    read = time.clock_gettime
    patch.setattr(time, "clock_gettime", lambda clock: read(clock) + seconds)
