"""Backups: copies of a data directory that a server may be writing.

A backup is itself a data directory, with a manifest that is written last. It has the journal at one
moment, and the states saved before that moment (`storage.directory_copy`).

The copy starts over if it lacks a state that the journal needs: the server may have deleted the
state meanwhile, or created or rolled back a model.
"""

import json
import shutil
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wolfstream.service.storage.data_directory import (
    DirectoryInUse,
    check_exists,
    check_journal_end,
    high_water_path,
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
from wolfstream.service.storage.reach import (
    MANIFEST,
    BackupError,
    Reach,
    check_empty,
    model_reaches,
)

_ATTEMPTS = 3


def back_up(data: Path, to: Path, also: tuple[Path, ...] = ()) -> list[Reach]:
    """Copy a data directory, which a server may be writing; return the reach of each model.

    Args:
        data: the data directory.
        to: a directory that is missing or empty.
        also: other files to copy, if they exist.

    Raises BackupError, StartupError, OSError.
    """
    check_exists(data)
    check_empty(to)
    try:
        with owned(data):  # no server runs, so the journal's end must be intact
            check_journal_end(data)
    except DirectoryInUse:
        pass
    missing = ""
    for _ in range(_ATTEMPTS):
        acknowledged = _acknowledged(data)
        try:
            copy_directory(data, to)
        except ChangedMeanwhile:
            missing = "models were created or rolled back while their files were listed"
            continue
        with closing(open_storage(to, read_only=True)) as storage:
            results = list(model_reaches(storage, acknowledged))
        missing = next((problem for problem in results if isinstance(problem, str)), "")
        if not missing:
            reaches = [reach for reach in results if isinstance(reach, Reach)]
            copy_files([path for path in also if path.exists()], to)
            finish(to, reaches)
            return reaches
        shutil.rmtree(to)
    raise BackupError(f"{missing}: the server changed faster than it could be copied; try again")


def _acknowledged(data: Path) -> dict[int, int]:
    """Return model number -> sequence up to which the model is durable now."""
    with (
        closing(open_storage(data, read_only=True)) as storage,
        closing(HighWater(high_water_path(data), read_only=True)) as marks,
    ):
        return {model.number: marks.sequence(model.number) for model in storage.catalogue.models()}


def finish(to: Path, reaches: list[Reach]) -> None:
    """Write the manifest that makes a data directory a complete backup; durable on return.

    Args:
        to: the data directory.
        reaches: the reach of each of its models.
    """
    manifest: dict[str, Any] = {
        "made": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "models": [reach._asdict() for reach in reaches],
    }
    make_private(to / MANIFEST)
    (to / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    sync(to / MANIFEST)
    sync_directory(to)
