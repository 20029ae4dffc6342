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
def test_kills(tmp_path: Path, report: Report, exchanges: bool) -> None:
    server, owner = campaign(tmp_path, CRASHES // 2, SEED, exchanges, snapshot_samples=200)
    try:
        if not exchanges:
            assert owner.said("b")[0] == owner.said("twin")[0]
            assert owner.scores("b") == owner.scores("twin") == owner.compared()
        before = owner.said("a"), owner.said("b"), owner.compared()
        server.kill()
        server.start()
        owner.caught_up()
        assert (owner.said("a"), owner.said("b"), owner.compared()) == before
    finally:
        server.close()
    report(seed=SEED, crashes=CRASHES // 2, samples=owner.learned, promotions=owner.promoted)
