"""Private directories and files whose names survive a loss of power."""

import os
import stat
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

_DIRECTORY_MODE, _FILE_MODE = 0o700, 0o600


def make_directory(path: Path) -> None:
    """Make a directory and its missing parents, private and durable. Raises OSError."""
    if path.is_dir():
        return
    if path.parent != path:
        make_directory(path.parent)
    path.mkdir(_DIRECTORY_MODE, exist_ok=True)
    sync_directory(path.parent)


def unused_path(path: Path) -> Path:
    """Return the path itself if nothing is there, otherwise the first free `path-2`, `path-3`..."""
    if not path.exists():
        return path
    numbered = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return next(candidate for candidate in numbered if not candidate.exists())


def aside_path(path: Path) -> Path:
    """Return a free path beside another, with the current time in its name, to set it aside."""
    return unused_path(path.with_name(f"{path.name}.{datetime.now(UTC):aside-%Y%m%dT%H%M%S}"))


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable. Raises OSError."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def is_plain_file(path: Path) -> bool:
    """Return whether a path, or its link's target, is a regular file, not a pipe or device.

    Raises OSError if nothing is there.
    """
    return stat.S_ISREG(path.stat().st_mode)


def make_private(path: Path) -> None:
    """Make a file readable by its owner only; create it empty if missing. Raises OSError."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, _FILE_MODE)
    try:
        if os.fstat(file).st_uid == os.geteuid():
            os.fchmod(file, _FILE_MODE)
    finally:
        os.close(file)
