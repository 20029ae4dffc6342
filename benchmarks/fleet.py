"""One replica on JetStream beside the same server on SQLite, in turn: batches, and single samples.

    python -m benchmarks.fleet --rounds 3

Then three replicas behind a balancer, each model with a standby; then how far views are behind, how
soon one is held, and what a killed leader costs those who predict; `--rounds 0` leaves out what
comes before the views. Then takeovers, `--takeovers` of each kind, and how models are spread.

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

from benchmarks import fleet_takeovers, fleet_trio
from benchmarks.fleet_views import print_views
from benchmarks.machine import machine_line
from tests.service import balancer
from tests.service.fleet.conftest import Replica
from tests.service.nats import NatsServers
from tests.service.process import ServerProcess

_SPEC = {"prepare": None, "adaptive": None, "asset": None}
_SET_SIZE, _LARGER_SET = 2000, 5000


def rate(
    url: str, connections: int, batch: int, seconds: float, set_size: int = _SET_SIZE
) -> float:
    """Samples that are acknowledged in a second, each batch by one of so many connections."""
    name = f"m{time.monotonic_ns()}"
    random = np.random.default_rng(0)
    X, learned = random.normal(size=(batch, 20)), [0] * connections
    y = (X[:, 0] * X[:, 1] > 0).astype(int).tolist()
    body = {"x": X.tolist(), "y": y}
    with httpx.Client(base_url=url, timeout=60) as client:
        spec = _SPEC | {"working_set": {"max_size": set_size}}
        while client.put(f"/v1/models/{name}", json=spec).status_code == 503:
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
    parser.add_argument("--takeovers", type=int, default=20)
    arguments = parser.parse_args()
    print(f"## A replica of a fleet beside a server of its own\n\n{machine_line()}\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if arguments.rounds:
            print_rates(Path(folder), arguments.rounds, arguments.seconds)
        if arguments.rounds and not balancer.MISSING:
            print_three(Path(folder), arguments.rounds, arguments.seconds)
        print_views(Path(folder), arguments.seconds)
    if arguments.takeovers:
        fleet_takeovers.print_all(arguments.takeovers, (10_000, 100_000), 10_000)


def print_three(folder: Path, rounds: int, seconds: float) -> None:
    """Print the rate of three replicas with a standby behind a balancer, beside a server alone."""
    embedded, trio = ServerProcess(folder / "alone"), fleet_trio.Trio(folder / "trio")
    between = balancer.Balancer(folder, [one.url for one in trio.replicas])
    try:
        trio.start()
        urls = [embedded.start().url, between.start().url]
        rates: list[list[float]] = [[], []]
        for _ in range(rounds):
            for of, url in zip(rates, urls, strict=True):
                of.append(rate(url, 16, 64, seconds, _LARGER_SET))
        alone, three = (statistics.median(of) for of in rates)
        print(
            f"\nthree replicas behind a balancer, 16 x 64, a set of 5,000: {three:,.0f}/s, "
            f"one server alone {alone:,.0f}/s: {three / alone:.2f}\n",
            flush=True,
        )
    finally:
        between.close()
        trio.close()
        embedded.close()


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
