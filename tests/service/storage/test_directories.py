"""Directories that are made: private, and there after a loss of power."""

import os
from pathlib import Path

import pytest

from wolfstream.service.storage.directories import make_directory


def test_each_new_one_is_synced_into_the_one_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, Path]] = []
    of_path, of_system = Path.mkdir, os.fsync

    def mkdir(path: Path, *given: int, **named: bool) -> None:
        of_path(path, *given, **named)
        done.append(("made", path))

    def fsync(file: int) -> None:
        of_system(file)
        done.append(("synced", Path(f"/proc/self/fd/{file}").readlink()))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(os, "fsync", fsync)
    first, second = tmp_path / "a", tmp_path / "a" / "b"
    make_directory(second)
    assert done == [("made", first), ("synced", tmp_path), ("made", second), ("synced", first)]
    assert {path.stat().st_mode & 0o777 for path in (first, second)} == {0o700}
    make_directory(second)
    assert len(done) == 4
