"""Backups of a server that makes models and rolls them back while its files are listed."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.service.recovery.test_owned_log import SPEC, learn, model_in, upload
from tests.service.writer_bench import Bench
from wolfstream.service.storage import backup
from wolfstream.service.storage.backup import BackupError, back_up
from wolfstream.service.storage.restore import restore
from wolfstream.service.storage.sqlite_file import SqliteFile


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A model with a snapshot, and samples after it."""
    bench = Bench(tmp_path / "data")
    model = bench.create(SPEC)
    learn(bench, model)
    bench.snapshot(model)
    learn(bench, model)
    yield bench
    bench.kill()


def act_before_moment(patch: pytest.MonkeyPatch, number: int, action: Callable[[], Any]) -> None:
    """Have the server act before a copy opens the journal for the n-th time."""
    opened = count(1)

    def opening(*arguments: Any, **named: Any) -> SqliteFile:
        if next(opened) == number:
            action()
        return SqliteFile(*arguments, **named)

    patch.setattr(backup, "SqliteFile", opening)


@pytest.mark.parametrize("number", [1, 2])
class TestMeanwhile:
    def test_rollback_is_whole(
        self, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
    ):
        model = model_in(bench, "m")
        roll_back = bench.writer.history.roll_back
        act_before_moment(monkeypatch, number, lambda: roll_back(model, 1))
        restored = _restored(bench, tmp_path)
        after = model_in(restored, "m")
        assert not after.broken
        assert after.rolled_back is not None
        assert after.published.sequence == 2
        restored.kill()

    def test_upload_is_whole(
        self, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
    ):
        act_before_moment(monkeypatch, number, lambda: upload(bench, "new", SPEC, 50))
        restored = _restored(bench, tmp_path)
        assert model_in(restored, "new").published.sequence == 50
        restored.kill()


def test_snapshot_that_is_replaced_is_left_out(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_in(bench, "m")
    bench.snapshot(model)
    act_before_moment(monkeypatch, 2, lambda: bench.snapshot(model))
    restored = _restored(bench, tmp_path)
    assert model_in(restored, "m").published.sequence == 2
    restored.kill()
    copied = (tmp_path / "backup").glob("snapshots/*/*.snapshot")
    assert [int(path.stem) for path in copied] == [1]


def _restored(bench: Bench, tmp_path: Path) -> Bench:
    """A server over what a backup of a server's directory is restored to."""
    back_up(bench.data, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored", None)
    return Bench(tmp_path / "restored")


class TestMissing:
    def test_pinned_state_is_noticed(self, bench: Bench, tmp_path: Path):
        bench.writer.history.roll_back(model_in(bench, "m"), 1)
        for path in bench.data.glob("snapshots/*/*.pinned"):
            path.unlink()
        with pytest.raises(BackupError, match="rolled back to at 2 is missing"):
            back_up(bench.data, tmp_path / "backup")

    def test_snapshot_of_an_upload_is_noticed(self, bench: Bench, tmp_path: Path):
        model = upload(bench, "new", SPEC, 50)
        for path in bench.data.glob(f"snapshots/{model.id}/*.snapshot"):
            path.unlink()
        with pytest.raises(BackupError, match="reaches 0 of 50 samples"):
            back_up(bench.data, tmp_path / "backup")
