"""Random schedules of one server: requests, orders, failing calls, crashes and losses of power.

`tests.service.schedules` describes what is done and what is checked. A failure names its seed and
its step; the same seed and code do the same again.
"""

import os
import time
from pathlib import Path
from random import Random

import pytest

from service.engine import journal_parts
from tests.service.schedules.schedule import Schedule
from tests.service.syscalls.library import SystemCalls

STEPS = 250
SEEDS = [str(seed) for seed in range(12)]
SECONDS = float(os.environ.get("HARD_SCHEDULE_SECONDS", "300"))


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of more samples than this are large."""
    monkeypatch.setattr(journal_parts, "PART_SAMPLES", 4)


def run(folder: Path, calls: SystemCalls, seed: str, steps: int = STEPS) -> Schedule:
    schedule = Schedule(folder, calls, seed)
    try:
        schedule.run(steps)
    finally:
        schedule.close()
    return schedule


@pytest.mark.parametrize("seed", SEEDS)
def test_schedule_keeps_all_promises(tmp_path: Path, system_calls: SystemCalls, seed: str) -> None:
    run(tmp_path / "server", system_calls, seed)


@pytest.mark.hard
@pytest.mark.timeout(SECONDS + 300)
def test_random_schedules_keep_all_promises(tmp_path: Path, system_calls: SystemCalls) -> None:
    """HARD_SEED begins with a seed; others follow it for HARD_SCHEDULE_SECONDS."""
    seed = os.environ.get("HARD_SEED") or str(Random().randrange(10**9))
    until, steps = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        print(f"seed {seed}")
        run(tmp_path / seed, system_calls, seed)
        steps += STEPS
        seed = str(int(seed) + 1)
    print(f"{steps / SECONDS:.0f} steps per second")
