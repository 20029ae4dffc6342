"""Snapshots in files: `DIR/snapshots/<model>/<sequence>.snapshot`."""

import contextlib
import shutil
from datetime import UTC, datetime
from pathlib import Path

from service.storage.interfaces import SnapshotDescription
from service.storage.snapshot_format import (
    DamagedSnapshot,
    State,
    decode_state,
    read_content,
    read_plain,
    write_state,
)

_SUFFIX = ".snapshot"


class SnapshotFiles:
    """`storage.interfaces.Snapshots` in a directory; any thread may use it.

    kept: how many snapshots of each model are kept; the oldest ones are deleted.
    """

    def __init__(self, directory: Path, kept: int = 4) -> None:
        self._directory = directory
        self._kept = kept

    def sequences(self, model: int) -> list[int]:
        """Sequences of a model's kept snapshots, newest first."""
        files = self._folder(model).glob(f"*{_SUFFIX}")
        return sorted((int(file.stem) for file in files if file.stem.isdecimal()), reverse=True)

    def name(self, model: int, sequence: int) -> str:
        """The path of a snapshot's file."""
        return str(self._path(model, sequence))

    def save(self, model: int, state: State) -> None:
        """Write a snapshot durably, and delete the oldest if there are too many."""
        self._folder(model).mkdir(parents=True, exist_ok=True)
        for partial in self._folder(model).glob("*.partial"):  # of a process that was killed
            partial.unlink(missing_ok=True)
        write_state(self._path(model, state.plain["sequence"]), state)
        for sequence in self.sequences(model)[self._kept :]:
            self._path(model, sequence).unlink(missing_ok=True)

    def load(self, model: int, sequence: int) -> State:
        """A snapshot's state. Raises DamagedSnapshot."""
        return decode_state(self.content(model, sequence), self._path(model, sequence).name)

    def content(self, model: int, sequence: int) -> bytes:
        """The bytes of a snapshot's file. Raises DamagedSnapshot."""
        return read_content(self._path(model, sequence))

    def written(self, model: int, sequence: int) -> datetime | None:
        """When a snapshot's file was last written; None where there is none."""
        try:
            return datetime.fromtimestamp(self._path(model, sequence).stat().st_mtime, UTC)
        except FileNotFoundError:
            return None

    def describe(self, model: int, sequence: int) -> SnapshotDescription | None:
        """Size, time and plain part of a snapshot's file; None where there is none."""
        path = self._path(model, sequence)
        try:
            file = path.stat()
        except FileNotFoundError:
            return None
        try:
            plain = read_plain(path)
        except DamagedSnapshot:
            plain = None
        written = datetime.fromtimestamp(file.st_mtime, UTC)
        return SnapshotDescription(file.st_size, written, plain)

    def set_aside(self, model: int, sequence: int) -> None:
        """Rename a damaged snapshot's file, so that it is no longer listed."""
        path = self._path(model, sequence)
        with contextlib.suppress(OSError):
            path.rename(path.with_suffix(".damaged"))

    def delete(self, model: int) -> None:
        """Delete all snapshots of a model."""
        shutil.rmtree(self._folder(model), ignore_errors=True)

    def keep_only(self, models: set[int]) -> None:
        """Delete the snapshots of all other models, which an interrupted deletion left."""
        for folder in self._directory.glob("*"):
            if folder.name.isdigit() and int(folder.name) not in models:
                shutil.rmtree(folder, ignore_errors=True)

    def _path(self, model: int, sequence: int) -> Path:
        return self._folder(model) / f"{sequence:020d}{_SUFFIX}"

    def _folder(self, model: int) -> Path:
        return self._directory / str(model)
