"""Runs simulations, each in a process forked from a prepared one, and prints what they find.

    python -m tests.simulation --seeds 100 --seconds 60

A line of JSON for each seed with `--json`; otherwise a summary, and the faults as they are found.
"""

import ctypes
import importlib
import os
import sys

_SAME_ADDRESSES = 0x0040000  # ADDR_NO_RANDOMIZE of Linux

if os.environ.get("PYTHONHASHSEED") != "0":  # sets would have another order in each run
    os.environ["PYTHONHASHSEED"] = "0"
    if sys.platform == "linux":
        ctypes.CDLL(None).personality(_SAME_ADDRESSES)
    os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])

# The standard library is replaced before anything else is imported.
importlib.import_module("tests.simulation.prepared")
importlib.import_module("tests.simulation.campaign").main()
