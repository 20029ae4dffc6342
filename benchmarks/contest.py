"""Contenders: each in a Python process of its own, on one thread, for a bounded time."""

import os
import resource
import signal
import subprocess
import sys
from typing import NamedTuple


class Output(NamedTuple):
    """The lines that a contender printed, and what stands for those that it did not come to.

    timed_out: whether it was stopped at its limit.
    """

    lines: list[str]
    instead: str
    timed_out: bool


def enter(module: str, *words: object, limit_seconds: int | None = None) -> Output:
    """Run `python -m benchmarks.MODULE WORDS` to its end, or to its limit.

    limit_seconds: of the processor, as all figures are: another program takes nothing from it.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.{module}", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    if limit_seconds is not None:
        # The soft limit would end it with a core file; the hard one kills it.
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (limit_seconds, limit_seconds + 1))
    output, errors = process.communicate()
    lines = output.splitlines()
    if process.returncode == 0:
        return Output(lines, "", False)
    if process.returncode == -signal.SIGXCPU:
        return Output(lines, f"> {limit_seconds} s", True)
    printed = errors.strip().splitlines() or [f"status {process.returncode}"]
    return Output(lines, f"failed: {printed[-1]}", False)
