"""A server that is killed, or loses power, seen through its answers alone (`tests.hard.black_box`).

HARD_CRASHES says how often, 100 by default; three tenths of them are losses of power, where a
compiler of C is found: after each the directory is what a disk might have
(`tests.service.syscalls`).
"""

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.hard.black_box.campaign import Campaign
from tests.hard.conftest import Report
from tests.service.process import CommandProcess
from tests.service.syscalls.disk import LOSSES, Disk, read_records
from tests.service.syscalls.library import build_library

pytestmark = [pytest.mark.hard, pytest.mark.timeout(9000)]

SEED = int(os.environ.get("HARD_SEED", "20260101"))
CRASHES = int(os.environ.get("HARD_CRASHES", "100"))
LOST_POWER = CRASHES * 3 // 10
SNAPSHOT_SAMPLES = 200


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CommandProcess]:
    (tmp_path / "disk").mkdir()
    running = CommandProcess(tmp_path / "disk" / "data", snapshot_samples=SNAPSHOT_SAMPLES)
    running.log_path = tmp_path / "server.log"
    yield running
    running.close()


def test_kills(server: CommandProcess, report: Report) -> None:
    campaign = Campaign(server, str(SEED))
    campaign.begin()
    for _ in range(CRASHES - LOST_POWER):
        campaign.live(server.kill)
        campaign.start_again()
    campaign.settle()
    figures = campaign.figures()
    report(seed=SEED, kills=CRASHES - LOST_POWER, **figures)
    assert figures["rollbacks"]
    assert figures["refits"]


def test_losses_of_power(
    server: CommandProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: Report
) -> None:
    recorder = build_library()
    if recorder is None:
        pytest.skip("there is no compiler of C here: install gcc")
    root, log = tmp_path / "disk", tmp_path / "calls"
    monkeypatch.setenv("LD_PRELOAD", str(recorder))
    monkeypatch.setenv("POWER_ROOT", str(root))
    monkeypatch.setenv("POWER_LOG", str(log))
    boot = tmp_path / "boot"
    monkeypatch.setenv("POWER_BOOT", str(boot))
    boot.write_text("first")
    random, losses = Random(SEED), Counter[str]()
    disk = Disk(root)

    def lose_power() -> None:
        nonlocal disk
        server.kill()
        loss = random.choice(LOSSES)
        disk.follow(read_records(log))
        disk.lose_power(random, loss)
        losses[f"of the kind {loss}"] += 1
        losses["writes not synced"] += disk.unsynced_writes
        losses["names not synced"] += disk.unsynced_names
        disk = Disk(root)
        log.unlink()
        boot.write_text(str(losses.total()))

    campaign = Campaign(server, f"{SEED} power")
    campaign.begin()
    for number in range(LOST_POWER):
        campaign.live(lose_power)
        if number % 7 == 0:  # power may be lost again while the server starts
            server.launch()
            time.sleep(random.uniform(0.5, 4))
            lose_power()
        campaign.start_again()
    campaign.settle()
    told = {name.replace(" ", "_"): n for name, n in sorted(losses.items())}
    report(seed=SEED, losses_of_power=LOST_POWER, **told, **campaign.figures())
    assert losses["writes not synced"]
