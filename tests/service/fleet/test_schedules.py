"""Random schedules of the storage of three replicas, without learners.

`tests.service.fleet_schedules` describes what is done and what is checked. A failure names its seed
and its step; the same seed and code do the same again.
"""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("nats")

from tests.service.fleet_schedules.both_servers import BothServers, Unequal
from tests.service.fleet_schedules.checker import Broken
from tests.service.fleet_schedules.mutants import MUTANTS, Mutant
from tests.service.fleet_schedules.profiles import PROFILES
from tests.service.fleet_schedules.schedule import Schedule
from tests.service.jetstream.server import Server
from tests.service.nats import MISSING, connected_server
from wolfstream.service.fleet.connection import NatsConnection
from wolfstream.service.fleet.streams import STATES

STEPS = 100
SEEDS = [
    *(("all", str(seed)) for seed in range(30)),
    *((mutant.profile, mutant.seed) for mutant in MUTANTS.values()),
]
# Within so many steps, a profile finds the fault that it is made for.
_MOST_STEPS = 20_000
SECONDS = float(os.environ.get("HARD_SCHEDULE_SECONDS", "300"))


def run(
    folder: Path,
    seed: str,
    profile: str = "all",
    mutant: Mutant | None = None,
    server: Server | None = None,
) -> Schedule:
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        schedule = Schedule(folder, patch, seed, PROFILES[profile], server)
        if mutant is not None:
            mutant.apply(patch)
        try:
            schedule.run(STEPS)
        finally:
            schedule.close()
            shutil.rmtree(folder)
    return schedule


@pytest.mark.parametrize(("profile", "seed"), SEEDS)
def test_schedule_keeps_promises(tmp_path: Path, profile: str, seed: str) -> None:
    run(tmp_path / "fleet", seed, profile)


def test_seed_repeats_its_schedule(tmp_path: Path) -> None:
    one, other = (run(tmp_path / name, "repeated") for name in ("one", "other"))
    assert one.trace == other.trace


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_seed_finds_its_mutant(tmp_path: Path, mutant: Mutant) -> None:
    """Where a change makes schedules go other ways, the search below prints another seed."""
    with pytest.raises(Broken, match=mutant.broken):
        run(tmp_path / "fleet", mutant.seed, mutant.profile, mutant)


@pytest.mark.hard
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_search_finds_mutant(tmp_path: Path, mutant: Mutant) -> None:
    for seed in map(str, range(_MOST_STEPS // STEPS)):
        found = _fault(tmp_path / "fleet", seed, mutant)
        if found:
            print(found)
            break
    assert mutant.broken in found


def _fault(folder: Path, seed: str, mutant: Mutant) -> str:
    """Return what a schedule finds; empty if it finds nothing."""
    try:
        run(folder, seed, mutant.profile, mutant)
    except Broken as error:
        return str(error).partition("\n")[0]
    return ""


@pytest.mark.hard
@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("profile", PROFILES)
def test_random_schedules_keep_promises(tmp_path: Path, profile: str) -> None:
    """HARD_SEED is the first seed; the profiles share HARD_SCHEDULE_SECONDS."""
    seed = os.environ.get("HARD_SEED") or str(Random().randrange(10**9))
    began, n_seeds = time.monotonic(), 0
    while time.monotonic() < began + SECONDS / len(PROFILES):
        print(f"seed {seed}")
        run(tmp_path / seed, seed, profile)
        seed, n_seeds = str(int(seed) + 1), n_seeds + 1
    print(f"{n_seeds * STEPS / (time.monotonic() - began):.0f} steps per second")


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsConnection]:
    """A connection to a real server."""
    if MISSING:
        pytest.skip(MISSING)
    with connected_server(tmp_path_factory.mktemp("nats")) as connection:
        yield connection


class TestRealServer:
    def test_does_the_same(self, tmp_path: Path, nats: NatsConnection) -> None:
        both = BothServers(nats)
        run(tmp_path / "fleet", "0", server=both)
        both.check()

    @pytest.mark.hard
    @pytest.mark.timeout(SECONDS + 300)
    @pytest.mark.parametrize("profile", PROFILES)
    def test_does_the_same_for_long(
        self, tmp_path: Path, nats: NatsConnection, profile: str
    ) -> None:
        """The profiles share HARD_SCHEDULE_SECONDS."""
        ends, n_seeds = time.monotonic() + SECONDS / len(PROFILES), 0
        while time.monotonic() < ends:
            both = BothServers(nats)
            run(tmp_path / "fleet", str(n_seeds), profile, server=both)
            both.check()
            n_seeds += 1
        print(f"{n_seeds} schedules")

    def test_with_another_message_is_noticed(self, tmp_path: Path, nats: NatsConnection) -> None:
        both = BothServers(nats)
        run(tmp_path / "fleet", "0", server=both)
        answer = nats.run(nats.ask("wolfstream.states.1.answers", b"another"), 9)
        assert answer["stream"] == STATES
        with pytest.raises(Unequal, match=STATES):
            both.check()
