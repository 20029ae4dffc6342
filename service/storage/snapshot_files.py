"""Snapshots in files: `DIR/snapshots/<model>/<sequence>.snapshot`.

States that rollbacks restored are pinned in the same folder, as `<digest>-<unique>.pinned`.
"""

import contextlib
import logging
import shutil
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from wolfstream.service.storage.directories import aside_path, make_directory, unused_path
from wolfstream.service.storage.interfaces import (
    DIGITS,
    SnapshotDescription,
    SnapshotFault,
    Snapshots,
    matches_pinned_name,
    new_pinned_name,
)
from wolfstream.service.storage.snapshot_format import (
    DamagedSnapshot,
    State,
    read_content,
    read_plain,
    write_content,
    write_state,
)

logger = logging.getLogger(__name__)

_SUFFIX = ".snapshot"
_PINNED = ".pinned"
_DELETED = ".deleted"


class SnapshotFiles(Snapshots):
    """`storage.interfaces.Snapshots` in a directory; any thread may use it."""

    def __init__(self, directory: Path, kept: int = 4) -> None:
        """Use a directory.

        Args:
            directory: the snapshots' directory; `save` and `pin` create it if it is missing.
            kept: the number of snapshots kept for each model; `save` deletes the oldest.
        """
        self._directory = directory
        self._kept = kept

    def models(self) -> list[int]:
        """Return the numbers of all models that have a folder here."""
        folders = [folder.name for folder in self._directory.glob("*")]
        return sorted(int(name) for name in folders if name.isdecimal())

    def sequences(self, model: int) -> list[int]:
        """Return the sequences of a model's snapshots, newest first."""
        files = self._folder(model).glob(f"*{_SUFFIX}")
        return sorted((int(file.stem) for file in files if file.stem.isdecimal()), reverse=True)

    def name(self, model: int, sequence: int) -> str:
        """Return the path of a snapshot's file."""
        return str(self._path(model, sequence))

    def save(self, model: int, state: State) -> None:
        """Write a snapshot, durable on return; delete the oldest if there are too many."""
        make_directory(self._folder(model))
        self._drop_partial(model, pinned=False)
        write_state(self._path(model, state.plain["sequence"]), state)
        for sequence in self.sequences(model)[self._kept :]:
            self._path(model, sequence).unlink(missing_ok=True)

    def content(self, model: int, sequence: int) -> bytes:
        """Return the bytes of a snapshot's file. Raises UnreadableSnapshot."""
        return read_content(self._path(model, sequence))

    def written(self, model: int, sequence: int) -> datetime | None:
        """Return when a snapshot's file was last written; None if there is none."""
        try:
            return datetime.fromtimestamp(self._path(model, sequence).stat().st_mtime, UTC)
        except FileNotFoundError:
            return None

    def describe(self, model: int, sequence: int) -> SnapshotDescription | None:
        """Return the size, time and plain part of a snapshot's file; None if there is none."""
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

    def set_aside(self, model: int, sequence: int, fault: SnapshotFault) -> None:
        """Give a snapshot's file its fault as suffix, so it is no longer listed."""
        path = self._path(model, sequence)
        with contextlib.suppress(OSError):
            path.rename(unused_path(path.with_suffix(f".{fault}")))

    def pin(self, model: int, content: bytes, name: str | None = None) -> str:
        """Write the bytes of a snapshot, durable on return; return their name."""
        name = new_pinned_name(content) if name is None else name
        make_directory(self._folder(model))
        self._drop_partial(model, pinned=True)
        write_content(self._pinned_path(model, name), content)
        return name

    def pinned_content(self, model: int, name: str) -> bytes:
        """Return the bytes that were pinned under a name. Raises DamagedSnapshot."""
        path = self._pinned_path(model, name)
        content = read_content(path)
        if not matches_pinned_name(name, content):
            raise DamagedSnapshot(path.name, "does not match its digest")
        return content

    def pinned_names(self, model: int) -> list[str]:
        """Return the names of all pinned states of a model."""
        return sorted(path.stem for path in self._folder(model).glob(f"*{_PINNED}"))

    def unpin(self, model: int, names: Collection[str]) -> None:
        """Delete pinned states of a model."""
        for name in names:
            self._pinned_path(model, name).unlink(missing_ok=True)

    def delete(self, model: int) -> None:
        """Delete all snapshots of a model.

        The folder is renamed first, so the next start can finish an interrupted deletion.
        """
        folder = self._folder(model)
        renamed = folder.with_name(f"{folder.name}{_DELETED}")
        with contextlib.suppress(OSError):
            folder.rename(renamed)
        for path in (folder, renamed):  # also if the folder could not be renamed
            shutil.rmtree(path, ignore_errors=True)

    def set_others_aside(self, models: set[int]) -> None:
        """Rename the folders of all other models, and finish interrupted deletions."""
        for folder in sorted(self._directory.glob("*")):
            if folder.name.isdigit() and int(folder.name) not in models:
                aside = aside_path(folder)
                folder.rename(aside)
                logger.warning(
                    "snapshots of a model that the journal does not have, set aside: path=%s "
                    "aside=%s. `wolfstream snapshot import` makes a model from one of these "
                    "files; delete the folder if you do not need it",
                    folder,
                    aside,
                )
            elif folder.name.endswith(_DELETED):
                shutil.rmtree(folder, ignore_errors=True)

    def _drop_partial(self, model: int, *, pinned: bool) -> None:
        """Delete unfinished files of a killed process, either of snapshots or of pinned states.

        Never both, because another thread may be writing the other kind.
        """
        for partial in self._folder(model).glob("*.partial"):
            if (len(partial.stem) >= DIGITS) is pinned:
                partial.unlink(missing_ok=True)

    def _path(self, model: int, sequence: int) -> Path:
        return self._folder(model) / f"{sequence:020d}{_SUFFIX}"

    def _pinned_path(self, model: int, name: str) -> Path:
        return self._folder(model) / f"{name}{_PINNED}"

    def _folder(self, model: int) -> Path:
        return self._directory / str(model)
