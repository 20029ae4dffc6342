"""Random schedules of the writers of three replicas; a failure names its seed and its step."""

import os
import time
from pathlib import Path
from random import Random

import pytest

from tests.service.nats import MISSING, NatsServers

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from tests.service.fleet.writer_schedule import WriterSchedule

STEPS = 40
SECONDS = float(os.environ.get("HARD_SCHEDULE_SECONDS", "300"))


def run(servers: NatsServers, folder: Path, seed: str) -> None:
    folder.mkdir()
    schedule = WriterSchedule(servers, folder, seed, folder.name)
    try:
        schedule.run(STEPS)
    finally:
        schedule.close()


@pytest.mark.parametrize("seed", range(6))
def test_writers_keep_promises(servers: NatsServers, tmp_path: Path, seed: int) -> None:
    run(servers, tmp_path / f"s{seed}", str(seed))


@pytest.mark.hard
@pytest.mark.timeout(SECONDS + 300)
def test_random_writers_keep_promises(servers: NatsServers, tmp_path: Path) -> None:
    """HARD_SEED is the first seed."""
    seed = int(os.environ.get("HARD_SEED") or Random().randrange(10**9))
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        print(f"seed {seed}")
        run(servers, tmp_path / f"s{seed}", str(seed))
        seed += 1
