"""Thousands of forged model files: `tests.service.web.test_forged_files` with more of them."""

import os
from pathlib import Path

import pytest

from tests.hard.conftest import Report
from tests.service.process import ServerProcess
from tests.service.web.test_forged_files import ROOM, SEED, campaign

FILES = int(os.environ.get("HARD_FORGED_FILES", "4000"))


@pytest.mark.hard
@pytest.mark.timeout(3600)
def test_no_forged_file_does_harm(tmp_path: Path, report: Report) -> None:
    server = ServerProcess(tmp_path / "data", **ROOM).start()
    try:
        told = campaign(server, FILES, SEED)
    finally:
        server.close()
    report(files=FILES, refused=told["refused"], accepted=told["accepted"])
