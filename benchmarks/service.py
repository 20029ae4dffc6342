"""The service under load, on loopback: rates, latencies, River, and many streams for a while.

    python -m benchmarks.service --parts singles,batches,challengers,latency --seconds 60

An answer of 200 means fsynced, learned and published. Server and client share the machine, and
absolute figures move with it: the ratios are of one run, contenders in turn. All parts take more
than eight minutes on two cores.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.machine import machine_line
from benchmarks.service_challengers import challengers
from benchmarks.service_latency import mixed_and_latency
from benchmarks.service_later import labels_later
from benchmarks.service_rates import batches, singles_and_streams
from benchmarks.service_river import beside_river
from benchmarks.service_soak import soak
from benchmarks.service_start import first_fits, starts

PARTS = ("start", "singles", "batches", "later", "challengers", "latency", "river", "soak")


def start(folder: Path) -> None:
    """Starts of a server, and first fits of the estimators."""
    starts(folder, sys.executable)
    first_fits(folder, sys.executable)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="which, with commas between")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the streams run")
    parser.add_argument("--river-samples", type=int, default=6_400, help="how much River learns")
    arguments = parser.parse_args()
    parts = arguments.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such parts: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    print(f"## The service under load\n\n{machine_line()}\n", flush=True)
    runs: dict[str, Callable[[Path], None]] = {
        "start": start,
        "singles": singles_and_streams,
        "batches": batches,
        "later": labels_later,
        "challengers": challengers,
        "latency": mixed_and_latency,
        "river": lambda folder: beside_river(folder, arguments.river_samples),
        "soak": lambda folder: soak(folder, arguments.seconds),
    }
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            runs[part](Path(folder))


if __name__ == "__main__":
    main()
