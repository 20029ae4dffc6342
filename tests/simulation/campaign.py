"""Simulations of many seeds, in processes that are forked from this one."""

import argparse
import faulthandler
import json
import os
import select
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.simulation import real
from tests.simulation.run import Result, run

# How long a simulation may take, for each second that it simulates and in all.
_LONGEST_SECONDS = float(os.environ.get("SIMULATION_REAL_SECONDS", "240"))


def main() -> None:
    """Run what the command line asks for; exit with 1 if anything was found."""
    options = _options()
    seeds = options.seed or [str(options.first + n) for n in range(options.seeds)]
    counts, found, simulated, spent = Counter[str](), 0, 0.0, 0.0
    began = real.monotonic()
    for result in _results(seeds, options):
        if options.json:
            print(json.dumps(result.plain()), flush=True)
        elif result.faults or options.verbose:
            _show(result, options)
        found += bool(result.faults)
        simulated += result.simulated_seconds
        spent += result.processor_seconds
        counts.update(result.counts)
    if not options.json:
        print(f"{len(seeds)} seeds, {found} with faults; {simulated:.0f} simulated seconds")
        print(f"{simulated / max(spent, 1e-9):.1f} simulated seconds per second of the processor")
        print(f"{simulated / (real.monotonic() - began):.1f} per second of real time")
        print(", ".join(f"{name}: {n}" for name, n in sorted(counts.items())))
    sys.stdout.flush()
    os._exit(1 if found else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how many seeds are run")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--seed", action="append", help="run this one; may be given several times")
    parser.add_argument("--seconds", type=float, default=60.0, help="of faults, in simulated time")
    parser.add_argument("--jobs", type=int, default=1, help="processes at the same time")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each seed")
    parser.add_argument("--verbose", action="store_true", help="show seeds without faults, too")
    parser.add_argument(
        "--log", type=Path, help="folder for the replicas' log of seeds with faults"
    )
    parser.add_argument("--trace", type=Path, help="folder for the trace of each seed")
    return parser.parse_args()


def _results(seeds: list[str], options: argparse.Namespace) -> Iterator[Result]:
    """Yield the result of each seed as it ends."""
    waiting, running = list(seeds), dict[int, _Child]()
    while waiting or running:
        while waiting and len(running) < options.jobs:
            seed = waiting.pop(0)
            child = _Child(seed, lambda of=seed: _simulate(of, options))  # type: ignore[misc]
            running[child.pipe] = child
        ready, _, _ = select.select(list(running), [], [], 1.0)
        for pipe in [*running]:
            child = running[pipe]
            if (pipe in ready and child.read()) or child.is_late():
                del running[pipe]
                yield child.result()


def _simulate(seed: str, options: argparse.Namespace) -> Result:
    if options.trace is None:
        return run(seed, options.seconds)
    options.trace.mkdir(parents=True, exist_ok=True)
    with (options.trace / f"{seed}.txt").open("w") as file:
        return run(seed, options.seconds, file.write)


class _Child:
    """A forked process that runs a simulation. pipe: its result comes here."""

    def __init__(self, seed: str, simulate: Callable[[], Result]) -> None:
        self._seed, self._began, self._content = seed, real.monotonic(), b""
        self.pipe, end = os.pipe()
        sys.stdout.flush()
        self._process = os.fork()
        if self._process == 0:
            os.close(self.pipe)
            _run_in_child(simulate, end)
        os.close(end)

    def read(self) -> bool:
        """Read what has come; return whether that is all."""
        piece = os.read(self.pipe, 1 << 16)
        self._content += piece
        return not piece

    def is_late(self) -> bool:
        """Return whether it has had its time; then it is ended."""
        if real.monotonic() - self._began < _LONGEST_SECONDS:
            return False
        os.kill(self._process, signal.SIGABRT)  # it prints where its threads are
        return True

    def result(self) -> Result:
        """Return what it has found."""
        os.close(self.pipe)
        os.waitpid(self._process, 0)
        if self._content:
            return Result(**json.loads(self._content))
        why = "the process of the simulation has ended without a result, or took too long"
        return Result(self._seed, [why], "", 0, 0.0, real.monotonic() - self._began, 0.0)


def _run_in_child(simulate: Callable[[], Result], end: int) -> None:
    faulthandler.enable()
    status = 1
    try:
        content: Any = json.dumps(simulate().plain()).encode()
        with os.fdopen(end, "wb") as pipe:
            pipe.write(content)
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(status)


def _show(result: Result, options: argparse.Namespace) -> None:
    rate = result.simulated_seconds / max(result.processor_seconds, 1e-9)
    print(
        f"seed {result.seed}: {len(result.faults)} faults, {result.simulated_seconds:.0f} s in "
        f"{result.real_seconds:.1f} s, {result.processor_seconds:.1f} s of the processor "
        f"({rate:.0f} times), {result.steps} steps, trace {result.trace}"
    )
    for fault in result.faults:
        print(f"  {fault}")
    if options.log is not None and result.log:
        options.log.mkdir(parents=True, exist_ok=True)
        (options.log / f"{result.seed}.txt").write_text("\n".join(result.log) + "\n")
    sys.stdout.flush()
