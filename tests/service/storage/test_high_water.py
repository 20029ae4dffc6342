"""The high-water mark of a model, which shows what was durable."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from wolfstream.service.storage.high_water import HighWater


def test_a_mark_that_could_not_be_written_is_written_with_the_next_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Also where that commit leaves the sequence as it was, as those of predictions do."""

    def fail(*_: object) -> int:
        raise OSError("no space left on device")

    with closing(HighWater(tmp_path / "high-water")) as marks:
        marks.note(3, 7)
        with monkeypatch.context() as full:
            full.setattr(os, "pwrite", fail)
            marks.note(3, 8)
        assert marks.of(3) == 7
        marks.note(3, 8)
        assert marks.of(3) == 8


def test_a_mark_never_goes_back(tmp_path: Path):
    """Two threads of a replica may note what they know in another order."""
    for _ in range(2):
        with closing(HighWater(tmp_path / "high-water")) as marks:
            for sequence in (7, 8, 7):
                marks.note(3, sequence)
            assert marks.of(3) == 8
