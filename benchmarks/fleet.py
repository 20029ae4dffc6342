"""One replica on JetStream beside the same server on SQLite, in turn: batches, and single samples.

    python -m benchmarks.fleet --rounds 3

Then three replicas: how far views are behind, how soon one is held, and what a killed leader costs
those who predict; `--rounds 0` measures that alone.

NATS flushes each message to disk before it is acknowledged, as SQLite does each commit. Servers and
clients share the machine: only the ratios of a run mean something.
"""

import argparse
import statistics
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np

from benchmarks.fleet_views import print_views
from benchmarks.machine import machine_line
from tests.service.fleet.conftest import Replica
from tests.service.nats import NatsServers
from tests.service.process import ServerProcess

_SPEC = {
    "prepare": None,
    "adaptive": None,
    "asset": None,
    "working_set": {"max_size": 2000},
}


def rate(url: str, connections: int, batch: int, seconds: float) -> float:
    """Samples that are acknowledged in a second, each batch by one of so many connections."""
    name = f"m{time.monotonic_ns()}"
    random = np.random.default_rng(0)
    X, learned = random.normal(size=(batch, 20)), [0] * connections
    y = (X[:, 0] * X[:, 1] > 0).astype(int).tolist()
    body = {"x": X.tolist(), "y": y}
    with httpx.Client(base_url=url, timeout=60) as client:
        while client.put(f"/v1/models/{name}", json=_SPEC).status_code == 503:
            time.sleep(0.1)
    end = time.monotonic() + seconds

    def send(number: int) -> None:
        with httpx.Client(base_url=url, timeout=60) as client:
            while time.monotonic() < end:
                client.post(f"/v1/models/{name}/samples", json=body).raise_for_status()
                learned[number] += batch

    threads = [threading.Thread(target=send, args=(number,)) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(learned) / seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    print(f"## A replica of a fleet beside a server of its own\n\n{machine_line()}\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.rounds:
            print_rates(Path(folder), arguments.rounds, arguments.seconds)
        print_views(Path(folder), arguments.seconds)


def print_rates(folder: Path, rounds: int, seconds: float) -> None:
    """Print how many samples are acknowledged in a second."""
    n_servers = (1, 3)
    fleets = {n: NatsServers(folder / f"nats{n}", n, sync=True) for n in n_servers}
    servers = {"SQLite": ServerProcess(folder / "sqlite")}
    for n, nats in fleets.items():
        nats.start()
        servers[f"NATS, {n}"] = Replica(folder / f"replica{n}", nats)
    try:
        for server in servers.values():
            server.start()
        print("| connections x batch | " + " | ".join(servers) + " | ratios |")
        print("|---|" + "---|" * (len(servers) + 1))
        for connections, batch in ((4, 64), (16, 64), (1, 1), (32, 1)):
            rates: dict[str, list[float]] = {name: [] for name in servers}
            for _ in range(rounds):
                for name, server in servers.items():
                    rates[name].append(rate(server.url, connections, batch, seconds))
            medians = [statistics.median(of) for of in rates.values()]
            ratios = ", ".join(f"{one / medians[0]:.2f}" for one in medians[1:])
            row = " | ".join(f"{one:,.0f}" for one in medians)
            print(f"| {connections} x {batch} | {row} | {ratios} |", flush=True)
    finally:
        for server in servers.values():
            server.close()
        for nats in fleets.values():
            nats.close()


if __name__ == "__main__":
    main()
