"""Random schedules of the storage of three replicas, without learners.

`tests.service.fleet_schedules` describes what is done and what is checked. A failure names its seed
and its step; the same seed and code do the same again.
"""

import os
import time
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("nats")

from tests.service.fleet_schedules.schedule import Schedule

STEPS = 100
SEEDS = [str(seed) for seed in range(30)]
SECONDS = float(os.environ.get("HARD_SCHEDULE_SECONDS", "300"))


def run(folder: Path, seed: str, steps: int = STEPS) -> Schedule:
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        schedule = Schedule(folder, patch, seed)
        try:
            schedule.run(steps)
        finally:
            schedule.close()
    return schedule


@pytest.mark.parametrize("seed", SEEDS)
def test_schedule_keeps_promises(tmp_path: Path, seed: str) -> None:
    run(tmp_path / "fleet", seed)


def test_seed_repeats_its_schedule(tmp_path: Path) -> None:
    one, other = (run(tmp_path / name, "repeated") for name in ("one", "other"))
    assert one.trace == other.trace


@pytest.mark.hard
@pytest.mark.timeout(SECONDS + 300)
def test_random_schedules_keep_promises(tmp_path: Path) -> None:
    """HARD_SEED is the first seed; others follow it for HARD_SCHEDULE_SECONDS."""
    seed = os.environ.get("HARD_SEED") or str(Random().randrange(10**9))
    began, n_seeds = time.monotonic(), 0
    while time.monotonic() < began + SECONDS:
        print(f"seed {seed}")
        run(tmp_path / seed, seed)
        seed, n_seeds = str(int(seed) + 1), n_seeds + 1
    print(f"{n_seeds * STEPS / (time.monotonic() - began):.0f} steps per second")
