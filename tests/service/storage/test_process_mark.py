"""What the mark of a process tells the next one."""

import logging
import time
from pathlib import Path

import pytest

from wolfstream.service.storage.crash_marks import ProcessMark

MOST = 1 << 30
SOON = 5.0


def left_by(path: Path, taken: int) -> None:
    """Leave the mark of a process that was killed when it took so many bytes."""
    mark = ProcessMark(path, MOST, lambda: taken)
    deadline = time.monotonic() + SOON
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    mark._ended.set()  # as the end of a process ends its threads


@pytest.mark.parametrize(("taken", "told"), [(MOST - 1, True), (MOST // 2, False)])
def test_killed_process(tmp_path: Path, caplog: pytest.LogCaptureFixture, taken: int, told: bool):
    left_by(tmp_path / "running", taken)
    after = ProcessMark(tmp_path / "running", MOST, lambda: 0)
    with caplog.at_level(logging.WARNING):
        after.report()
    after.end()
    assert ("probably killed for want of memory" in caplog.text) == told


def test_stopped_process_leaves_nothing(tmp_path: Path):
    left_by(tmp_path / "running", MOST - 1)
    ProcessMark(tmp_path / "running", MOST, lambda: 0).end()
    assert not (tmp_path / "running").exists()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"1 2 3", b"x y"])
def test_damaged_mark_says_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
):
    (tmp_path / "running").write_bytes(content)
    mark = ProcessMark(tmp_path / "running", MOST, lambda: 0)
    mark.report()
    mark.end()
    assert not caplog.records
