"""Random schedules of the writers of three replicas; a failure names its seed and its step."""

import os
import time
from pathlib import Path
from random import Random

import pytest

from tests.service.nats import MISSING, NatsServers

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from tests.service.fleet.writer_mutants import MUTANTS, Mutant
from tests.service.fleet.writer_schedule import PROFILES, Broken, WriterSchedule

STEPS = 40
SECONDS = float(os.environ.get("HARD_SCHEDULE_SECONDS", "300"))


def run(servers: NatsServers, folder: Path, seed: int, profile: str = "all") -> None:
    folder = folder / f"{profile}-{seed}"
    folder.mkdir()
    schedule = WriterSchedule(servers, folder, str(seed), profile)
    try:
        schedule.run(STEPS)
    finally:
        schedule.close()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("profile", PROFILES)
def test_writers_keep_promises(
    servers: NatsServers, tmp_path: Path, profile: str, seed: int
) -> None:
    run(servers, tmp_path, seed, profile)


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_seed_finds_its_mutant(
    servers: NatsServers, tmp_path: Path, mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant.apply(monkeypatch)
    with pytest.raises(Broken, match=mutant.broken):
        run(servers, tmp_path, mutant.seed, mutant.profile)


@pytest.mark.hard
@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("profile", PROFILES)
def test_random_writers_keep_promises(servers: NatsServers, tmp_path: Path, profile: str) -> None:
    """HARD_SEED is the first seed; the profiles share HARD_SCHEDULE_SECONDS."""
    seed = int(os.environ.get("HARD_SEED") or Random().randrange(10**9))
    ends = time.monotonic() + SECONDS / len(PROFILES)
    while time.monotonic() < ends:
        print(f"seed {seed}")
        run(servers, tmp_path, seed, profile)
        seed += 1
