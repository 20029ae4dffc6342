"""Thousands of forged model files: `tests.service.web.test_forged_files` with more of them.

Some are drawn from a seed. Of the others each array of a model with everything is forged in turn,
in every way; a model has some twenty thousand of these, of which one in so many is tried.
"""

import os
from pathlib import Path

import pytest

from tests.hard.conftest import Report
from tests.service.process import ServerProcess
from tests.service.web.test_forged_files import ROOM, SEED, campaign, each_file

FILES = int(os.environ.get("HARD_FORGED_FILES", "4000"))
EACH = 80_000


@pytest.mark.hard
@pytest.mark.timeout(3600)
def test_no_forged_file_does_harm(tmp_path: Path, report: Report) -> None:
    server = ServerProcess(tmp_path / "data", **ROOM).start()
    try:
        told = campaign(server, FILES, SEED)
    finally:
        server.close()
    report(files=FILES, refused=told["refused"], accepted=told["accepted"])


@pytest.mark.hard
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["everything of classes", "everything of numbers"])
def test_no_forged_array_does_harm(tmp_path: Path, report: Report, name: str) -> None:
    server = ServerProcess(tmp_path / "data", **ROOM).start()
    step = max(1, EACH // FILES)
    try:
        told = each_file(server, name, lambda i: (i + SEED) % step == 0)
    finally:
        server.close()
    report(refused=told["refused"], accepted=told["accepted"])
