"""How much a challenger slows the answers of its champion in a fleet of three.

    python -m benchmarks.fleet_challengers

All requests go to one replica, which may have to hand them on. A model alone may have another
leader than the champion and its challenger, and each has a standby.
"""

import tempfile
from pathlib import Path

import httpx

from benchmarks.fleet_trio import Trio
from benchmarks.machine import machine_line
from benchmarks.service_challengers import compare


def main() -> None:
    """Measure and print."""
    print(f"## A challenger in a fleet\n\n{machine_line()}\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        trio = Trio(Path(folder) / "trio")
        try:
            trio.start()
            with httpx.Client(base_url=trio.replicas[0].url, timeout=60) as client:
                compare(client)
        finally:
            trio.close()


if __name__ == "__main__":
    main()
