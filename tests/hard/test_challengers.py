"""Challengers of a server that is killed again and again."""

import os
from pathlib import Path

import pytest

from tests.hard.conftest import Report
from tests.service.engine.test_challenger_crashes import campaign

pytestmark = [pytest.mark.hard, pytest.mark.timeout(3000)]

SEED = int(os.environ.get("HARD_SEED", "20260101"))
CRASHES = int(os.environ.get("HARD_CRASHES", "100"))


@pytest.mark.parametrize("exchanges", [False, True])
def test_challengers_survive_kills(tmp_path: Path, report: Report, exchanges: bool) -> None:
    kills = CRASHES // 2
    with campaign(tmp_path, kills, SEED, exchanges, snapshot_samples=200) as (server, owner):
        if not exchanges:
            assert owner.said("b")[0] == owner.said("twin")[0]
            assert owner.scores("b") == owner.scores("twin") == owner.compared()
        before = owner.said("a"), owner.said("b"), owner.compared()
        server.kill()
        server.start()
        owner.caught_up()
        assert (owner.said("a"), owner.said("b"), owner.compared()) == before
    report(seed=SEED, crashes=kills, samples=owner.learned, promotions=owner.promoted)
