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

from tests.service.schedules.schedule import PROFILES, Schedule
from tests.service.syscalls.library import SystemCalls
from wolfstream.service.engine import blocks

STEPS = 200
# Each of a profile's own seeds fails without one of the fixes that the profile is for.
SEEDS = {
    "all": range(6),
    "states": range(6),
    "numbers": (1, 6),
    "rows": (2, 3),
    "parts": (0, 1),
    "broken": (1, 3, 4),
    "challengers": (2, 3),
    "keys": (4, 5),
    "reads": (0, 1),
    "unloaded": (0, 1, 2, 4),
    "fits": (5, 7, 8),
}
SECONDS = float(os.environ.get("HARD_SCHEDULE_SECONDS", "300"))


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of more samples than this are large."""
    monkeypatch.setattr(blocks, "PART_SAMPLES", 4)


def run(folder: Path, calls: SystemCalls, seed: str, profile: str) -> None:
    schedule = Schedule(folder, calls, seed, PROFILES[profile])
    try:
        schedule.run(STEPS)
    finally:
        schedule.close()


@pytest.mark.parametrize(
    ("profile", "seed"), [(name, str(seed)) for name, seeds in SEEDS.items() for seed in seeds]
)
def test_schedule_keeps_promises(
    tmp_path: Path, system_calls: SystemCalls, profile: str, seed: str
) -> None:
    run(tmp_path / "server", system_calls, seed, profile)


def test_all_profiles_have_seeds() -> None:
    assert SEEDS.keys() == PROFILES.keys()


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
