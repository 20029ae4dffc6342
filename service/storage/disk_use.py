"""Disk space that a data directory uses."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from wolfstream.service.storage.data_directory import journal_path, snapshots_path


class DiskUse(NamedTuple):
    """Bytes used by the journal and by snapshots, and free bytes on their file system."""

    log: int
    snapshots: int
    free: int


def disk_use(data: Path) -> DiskUse:
    """Measure a data directory. Raises OSError if it does not exist."""
    journal, snapshots = journal_path(data), snapshots_path(data)
    return DiskUse(
        log=_size(journal.parent.glob(f"{journal.name}*")),
        snapshots=_size(snapshots.glob("*/*")),
        free=shutil.disk_usage(data).free,
    )


def _size(files: Iterable[Path]) -> int:
    total = 0
    for file in files:
        try:
            total += file.stat().st_size
        except OSError:  # replaced or deleted since it was listed
            continue
    return total
