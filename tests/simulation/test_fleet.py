"""Whole fleets in simulation: a few seeds with every change, and as many as wanted on demand.

SIMULATION_SEEDS says how many the campaign runs (100), SIMULATION_SECONDS how long things fail in
each (60, in simulated time), SIMULATION_FIRST the first seed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SEEDS = os.environ.get("SIMULATION_SEEDS", "100")
SECONDS = os.environ.get("SIMULATION_SECONDS", "60")
FIRST = os.environ.get("SIMULATION_FIRST", "1")
# Faults that are known and not repaired yet: the tests are silent about them.
KNOWN = ()
# Seeds that find a hole in who may write a log once what closes it is taken out: a refused term
# that goes on (2000), a purge before its row (2005), unconfirmed descriptions (2011), and
# a doubt that ends before its commit is learned (2016). A seed of a simulation that has changed is
# another run, so they may find nothing more one day.
HAVE_FOUND = ("2000", "2005", "2011", "2016")


def simulated(*arguments: str) -> list[dict[str, Any]]:
    """Return the results of simulations."""
    command = [sys.executable, "-m", "tests.simulation", "--json", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert results, done.stderr
    return results


def told(result: dict[str, Any]) -> str:
    """Return the faults of a seed, but for known ones, with the seed."""
    faults = [one for one in result["faults"] if not any(known in one for known in KNOWN)]
    return "\n".join([f"seed {result['seed']}", *faults]) if faults else ""


@pytest.fixture(scope="module")
def results() -> list[dict[str, Any]]:
    """Simulations of a few seeds, of which the last one runs twice."""
    seeds = [word for seed in ("1", "3", "6", "6") for word in ("--seed", seed)]
    return simulated(*seeds, "--seconds", "10", "--jobs", "2")


def test_fleet_keeps_promises_under_faults(results: list[dict[str, Any]]) -> None:
    assert [told(one) for one in results if told(one)] == []


def test_same_seed_gives_same_run(results: list[dict[str, Any]]) -> None:
    traces = [one["trace"] for one in results]
    assert len(traces) == 4
    assert len(set(traces)) == 3


@pytest.mark.hard
@pytest.mark.timeout(0)
def test_seeds_that_have_found_holes_find_nothing() -> None:
    seeds = [word for seed in HAVE_FOUND for word in ("--seed", seed)]
    results = simulated(*seeds, "--seconds", "60", "--jobs", str(os.cpu_count() or 1))
    assert len(results) == len(HAVE_FOUND)
    assert [told(one) for one in results if told(one)] == []


@pytest.mark.hard
@pytest.mark.timeout(0)
def test_campaign_finds_no_broken_promise() -> None:
    results = simulated(
        "--seeds", SEEDS, "--first", FIRST, "--seconds", SECONDS, "--jobs", str(os.cpu_count() or 1)
    )
    seconds = sum(one["simulated_seconds"] for one in results)
    spent = sum(one["processor_seconds"] for one in results)
    faults: dict[str, int] = {}
    for one in results:
        for name, n in one["counts"].items():
            if name.startswith("fault "):
                faults[name] = faults.get(name, 0) + n
    print(f"{seconds:.0f} simulated seconds, {seconds / spent:.1f} per second; {faults}")
    assert [told(one) for one in results if told(one)] == []
