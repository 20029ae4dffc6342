"""Runs simulations, each in a process that is forked from a prepared one, and prints what they find.

    python -m tests.simulation --seeds 100 --seconds 60

A line of JSON for each seed with `--json`; otherwise a summary, and the faults as they are found.
"""

import ctypes
import os
import sys

_SAME_ADDRESSES = 0x0040000  # ADDR_NO_RANDOMIZE of Linux

if os.environ.get("PYTHONHASHSEED") != "0":  # sets would have another order in each run
    os.environ["PYTHONHASHSEED"] = "0"
    if sys.platform == "linux":
        ctypes.CDLL(None).personality(_SAME_ADDRESSES)
    os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])

from tests.simulation import prepared  # noqa: F401, I001 - before all others
from tests.simulation.campaign import main

main()
