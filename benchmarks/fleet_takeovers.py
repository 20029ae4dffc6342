"""How long a fleet's models take no samples when a part of it fails, and how models are spread.

    python -m benchmarks.fleet_takeovers --rounds 20 --samples 10000 100000

A takeover is timed from the kill or the stop to the next sample that is acknowledged, to a client
that asks the other replicas all the time.
"""

import argparse
import signal
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fleet_trio import Trio, found
from benchmarks.machine import machine_line

SPEC = {"prepare": None, "adaptive": None, "asset": None}
_BATCH = 500
# Of each stream of the logs one or more.
_MODELS_WHILE_NATS_FAILS, _SPREAD = 16, 300


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--samples", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--set", type=int, default=10_000)
    asked = parser.parse_args()
    print(f"{machine_line()}\n", flush=True)
    print_all(asked.rounds, asked.samples, asked.set)


def print_all(rounds: int, samples: Sequence[int], set_size: int) -> None:
    """Measure in a fleet of its own each, and print."""
    print("| what fails | times | median, s | longest, s |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for n in samples:
            trio = Trio(Path(folder) / f"of{n}")
            try:
                _leaders_fail(trio.start(), rounds, n, set_size)
            finally:
                trio.close()
        trio = Trio(Path(folder) / "spread")
        try:
            _servers_fail(trio.start(), rounds)
            _spread(trio)
        finally:
            trio.close()


def _row(what: str, seconds: Sequence[float]) -> None:
    median, longest = statistics.median(seconds), max(seconds)
    print(f"| {what} | {len(seconds)} | {median:.2f} | {longest:.2f} |", flush=True)


def _leaders_fail(trio: Trio, rounds: int, n: int, set_size: int) -> None:
    trio.make("model", SPEC | {"working_set": {"max_size": set_size}})
    urls = [one.url for one in trio.replicas]
    for start in range(0, n, _BATCH):
        sequence = trio.learn(urls, "model", _BATCH, start)
    seconds: dict[str, list[float]] = {"killed": [], "stopped": []}
    for number in range(rounds):
        found(lambda at=sequence: trio.is_ready("model", at))  # type: ignore[misc]
        leader = urls.index(trio.leaders()["model"])
        others = [url for url in urls if url != urls[leader]]
        how = "killed" if number % 2 == 0 else "stopped"
        one, began = trio.replicas[leader], time.monotonic()
        one.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
        sequence = trio.learn(others, "model", 1, number)
        seconds[how].append(time.monotonic() - began)
        if how == "killed":
            one.exit_code()
            one.start()
        else:
            one.send_signal(signal.SIGCONT)
    for how, of in seconds.items():
        _row(f"the leader is {how}, {n:,} samples after its snapshot", of)


def _servers_fail(trio: Trio, rounds: int) -> None:
    """Kill a NATS server; the seconds until the last of some models has taken a sample."""
    urls = [one.url for one in trio.replicas]
    names = [f"of-nats-{number}" for number in range(_MODELS_WHILE_NATS_FAILS)]
    for name in names:
        trio.make(name, SPEC)
        trio.learn(urls, name, 1)
    seconds = list[float]()
    for number in range(rounds):
        server, began = number % 3, time.monotonic()
        trio.nats.kill(server)
        for name in names:
            trio.learn(urls, name, 1, number)
        seconds.append(time.monotonic() - began)
        trio.nats.start_one(server)
        time.sleep(15)  # it has to read what it missed: two servers of three have to be whole
    _row(f"a NATS server is killed, until all of {len(names)} models have learned", seconds)


def _spread(trio: Trio) -> None:
    """Make many models; print how they are spread, and which ones move when a replica leaves."""
    urls = [one.url for one in trio.replicas]
    for number in range(_SPREAD):
        trio.make(f"model-{number}", SPEC)
    names = {f"model-{number}" for number in range(_SPREAD)}
    found(lambda: names <= {name for one in trio.reported().values() for name in one["follows"]})
    before = found(lambda: _of_all(trio, names))
    counts = Counter(before[name] for name in names)
    print(f"\nleaders of {_SPREAD} models: {sorted(counts[url] for url in urls)}", flush=True)
    leaving, began = urls[2], time.monotonic()
    assert trio.replicas[2].terminate() == 0
    after = found(lambda: _of_all(trio, names, besides=leaving))
    moved = {name for name in names if before[name] != after[name]}
    others = {name for name in moved if before[name] != leaving}
    print(
        f"a replica leaves: {len(moved)} models move within {time.monotonic() - began:.1f} s, of "
        f"which {len(others)} were not its own",
        flush=True,
    )


def _of_all(trio: Trio, names: set[str], besides: str = "") -> dict[str, str]:
    """The leaders of all models; nothing until each has one, other than a replica that leaves."""
    leaders = trio.leaders()
    return leaders if names <= leaders.keys() and besides not in leaders.values() else {}


if __name__ == "__main__":
    main()
