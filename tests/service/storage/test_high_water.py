"""The high-water mark of a model, which shows what was durable."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.service.storage.journals import entry, opened
from tests.service.storage.writing import append, term_of
from tests.service.syscalls.disk import Disk, read_records
from tests.service.syscalls.library import SystemCalls
from wolfstream.service.storage.data_directory import high_water_path
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.snapshot_format import State


def test_failed_mark_written_next_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Also where that commit leaves the sequence as it was, as those of predictions do."""

    def fail(*_: object) -> int:
        raise OSError("no space left on device")

    with closing(HighWater(tmp_path / "high-water")) as marks:
        marks.mark(3, 7)
        with monkeypatch.context() as full:
            full.setattr(os, "pwrite", fail)
            marks.mark(3, 8)
        assert marks.sequence(3) == 7
        marks.mark(3, 8)
        assert marks.sequence(3) == 8


def test_a_mark_never_goes_back(tmp_path: Path):
    """Two threads of a replica may note what they know in another order."""
    for _ in range(2):
        with closing(HighWater(tmp_path / "high-water")) as marks:
            for sequence in (7, 8, 7):
                marks.mark(3, sequence)
            assert marks.sequence(3) == 8


class TestLossOfPower:
    """What was not synced is gone: the mark is there where nothing else shows what was durable."""

    @pytest.fixture
    def directory(self, tmp_path: Path, system_calls: SystemCalls) -> Iterator[Path]:
        """A data directory whose system calls are recorded."""
        data = tmp_path / "data"
        data.mkdir()
        self.disk, self.calls, self.log = Disk(data), system_calls, tmp_path / "calls"
        system_calls.record(data, self.log)
        yield data
        system_calls.end_record()

    def mark_left(self, model: int) -> int:
        """The mark of a model if power is lost now."""
        self.calls.end_record()
        self.disk.follow(read_records(self.log))
        left = self.log.with_name("left")
        self.disk.lose_power(Random(0), "drop", left)
        with closing(HighWater(high_water_path(left), read_only=True)) as marks:
            return marks.sequence(model)

    def test_keeps_that_of_a_model_that_begins_with_a_snapshot(self, directory: Path):
        """Its log has no samples: without the mark it is as if it had none."""
        state = State({"sequence": 7}, {})
        with opened(directory / "log.sqlite") as storage:
            with storage.catalogue.creating("m", {}, "epoch", sequence=7) as term:
                storage.snapshots.save(term.model, state)
            assert self.mark_left(term.model) == 7

    def test_keeps_that_of_samples_that_are_dropped(self, directory: Path):
        """They are in a snapshot from then on."""
        with opened(directory / "log.sqlite") as storage:
            with storage.catalogue.creating("m", {}, "epoch") as term:
                pass
            append(storage, [entry(term.model, 5, 5)])
            storage.snapshots.save(term.model, State({"sequence": 5}, {}))
            term_of(storage, term.model).drop(5)
            assert self.mark_left(term.model) == 5
