"""Backups: a data directory is copied while a server writes it.

A backup is a data directory itself, with `backup.json`, which is written last. It holds the journal
as of one moment, and the states that were saved before that moment, so none is ahead of it
(`storage.directory_copy`).

Where a state is missing that the journal needs, because the server has deleted it in the meantime
or a model was made or rolled back, the copy begins again.
"""

import json
import shutil
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wolfstream.service.storage.data_directory import (
    DirectoryInUse,
    check_journal_end,
    high_water_path,
    journal_path,
    open_storage,
    owned,
)
from wolfstream.service.storage.directories import make_private, sync_directory
from wolfstream.service.storage.directory_copy import (
    ChangedMeanwhile,
    copy_directory,
    copy_files,
    sync,
)
from wolfstream.service.storage.high_water import HighWater
from wolfstream.service.storage.reach import MANIFEST, BackupError, Reach, check_empty, reaches_of

_ATTEMPTS = 3


def back_up(data: Path, to: Path, also: tuple[Path, ...] = ()) -> list[Reach]:
    """Copy a data directory, which a server may be writing, and return what the copy reaches.

    to: a directory that does not exist or is empty. also: other files of the directory.
    Raises BackupError, StartupError, OSError.
    """
    if not journal_path(data).exists():
        raise BackupError(f"{data} is no data directory: it has no {journal_path(data).name}")
    check_empty(to)
    try:
        with owned(data):  # no server: what it left must be whole
            check_journal_end(data)
    except DirectoryInUse:
        pass
    missing = ""
    for _ in range(_ATTEMPTS):
        acknowledged = _acknowledged(data)
        try:
            copy_directory(data, to)
        except ChangedMeanwhile:
            missing = "models were made or rolled back while their files were listed"
            continue
        with closing(open_storage(to, read_only=True)) as storage:
            found = list(reaches_of(storage, acknowledged))
        missing = next((problem for problem in found if isinstance(problem, str)), "")
        if not missing:
            reaches = [reach for reach in found if isinstance(reach, Reach)]
            copy_files([path for path in also if path.exists()], to)
            finish(to, reaches)
            return reaches
        shutil.rmtree(to)
    raise BackupError(f"{missing}: the server changed faster than it could be copied; try again")


def _acknowledged(data: Path) -> dict[int, int]:
    """Return the sequence up to which each model was durable before now."""
    with (
        closing(open_storage(data, read_only=True)) as storage,
        closing(HighWater(high_water_path(data), read_only=True)) as marks,
    ):
        return {model.number: marks.of(model.number) for model in storage.catalogue.models()}


def finish(to: Path, reaches: list[Reach]) -> None:
    """Mark a data directory as a complete backup of models that can be restored so far."""
    manifest: dict[str, Any] = {
        "made": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "models": [reach._asdict() for reach in reaches],
    }
    make_private(to / MANIFEST)
    (to / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    sync(to / MANIFEST)
    sync_directory(to)
