"""Pipes, devices and directories where files should be: said at once, and never waited for."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from wolfstream.service.errors import StartupError
from wolfstream.service.storage import data_directory
from wolfstream.service.storage.data_directory import open_storage, owned
from wolfstream.service.storage.snapshot_files import SnapshotFiles
from wolfstream.service.storage.snapshot_format import (
    DamagedSnapshot,
    State,
    UnreadableSnapshot,
    read_plain,
)

STATE = State({"sequence": 7}, {})
FILES = ["lock", "keys.json", "log.sqlite", "log.sqlite-wal", "high-water", "replays"]


def replaced(path: Path, how: str) -> None:
    path.unlink(missing_ok=True)
    if how == "pipe":
        os.mkfifo(path)
    elif how == "directory":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")


@pytest.mark.parametrize("how", ["pipe", "directory", "device"])
@pytest.mark.parametrize("name", FILES)
def test_in_a_data_directory(tmp_path: Path, name: str, how: str) -> None:
    open_storage(tmp_path).close()
    replaced(tmp_path / name, how)
    with pytest.raises(StartupError, match=f"{name} is not a file; move it away"), owned(tmp_path):
        pass
    with pytest.raises(StartupError, match=f"{name} is not a file; move it away"):
        open_storage(tmp_path)


def test_a_storage_that_cannot_be_opened_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> Any:
        raise StartupError("replays cannot be opened: Permission denied; check its permissions")

    monkeypatch.setattr(data_directory, "ReplayMarks", refused)
    with pytest.raises(StartupError, match="Permission denied"):
        open_storage(tmp_path)
    assert [path for path in open_files() if tmp_path in path.parents] == []


def open_files() -> list[Path]:
    """The files that this process has open."""
    found = []
    for number in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of the folder itself is closed by now
            found.append(number.readlink())
    return found


@pytest.mark.parametrize("how", ["pipe", "directory", "device"])
def test_a_snapshot_of_that_kind_is_unreadable(tmp_path: Path, how: str) -> None:
    snapshots = SnapshotFiles(tmp_path, 4)
    snapshots.save(1, STATE)
    (path,) = tmp_path.glob("1/*.snapshot")
    replaced(path, how)
    with pytest.raises(UnreadableSnapshot, match="not a file"):
        snapshots.load(1, 7)
    with pytest.raises(DamagedSnapshot, match="not a file"):
        read_plain(path)


def test_a_link_to_a_file_is_one(tmp_path: Path) -> None:
    snapshots = SnapshotFiles(tmp_path, 4)
    snapshots.save(1, STATE)
    (path,) = tmp_path.glob("1/*.snapshot")
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert snapshots.load(1, 7).plain == STATE.plain
