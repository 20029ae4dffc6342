"""Random schedules of one server: requests, orders, failing calls, crashes and losses of power.

`tests.service.schedules` describes what is done and what is checked. A failure names its seed and
its step; the same seed and code do the same again.
"""

import os
import shutil
import time
from pathlib import Path
from random import Random

import pytest

from service.engine import journal_parts
from tests.service.schedules.schedule import PROFILES, Schedule
from tests.service.syscalls.library import SystemCalls

STEPS = 200
SEEDS = [str(seed) for seed in range(6)]
SECONDS = float(os.environ.get("HARD_SCHEDULE_SECONDS", "300"))


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of more samples than this are large."""
    monkeypatch.setattr(journal_parts, "PART_SAMPLES", 4)


def run(folder: Path, calls: SystemCalls, seed: str, profile: str = "all") -> None:
    schedule = Schedule(folder, calls, seed, PROFILES[profile])
    try:
        schedule.run(STEPS)
    finally:
        schedule.close()


@pytest.mark.parametrize("profile", ["states", "numbers", "rows"])
@pytest.mark.parametrize("seed", SEEDS)
def test_schedule_of_profile_keeps_promises(
    tmp_path: Path, system_calls: SystemCalls, profile: str, seed: str
) -> None:
    run(tmp_path / "server", system_calls, seed, profile)


@pytest.mark.parametrize("seed", SEEDS)
def test_schedule_of_all_keeps_promises(
    tmp_path: Path, system_calls: SystemCalls, seed: str
) -> None:
    run(tmp_path / "server", system_calls, seed)


@pytest.mark.hard
@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("profile", PROFILES)
def test_random_schedules_keep_promises(
    tmp_path: Path, system_calls: SystemCalls, profile: str
) -> None:
    """HARD_SEED is the first seed; others follow it for HARD_SCHEDULE_SECONDS."""
    seed = os.environ.get("HARD_SEED") or str(Random().randrange(10**9))
    began, n_seeds = time.monotonic(), 0
    while time.monotonic() < began + SECONDS:
        print(f"seed {seed}")
        run(tmp_path / seed, system_calls, seed, profile)
        shutil.rmtree(tmp_path / seed)
        seed, n_seeds = str(int(seed) + 1), n_seeds + 1
    print(f"{n_seeds * STEPS / (time.monotonic() - began):.0f} steps per second")
