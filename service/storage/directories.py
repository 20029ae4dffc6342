"""Directories and files that only their owner reads, and whose names survive a loss of power."""

import os
import stat
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

_DIRECTORY_MODE, _FILE_MODE = 0o700, 0o600


def make_directory(path: Path) -> None:
    """Make a directory, and those above it, durably where they are missing. Raises OSError."""
    if path.is_dir():
        return
    if path.parent != path:
        make_directory(path.parent)
    path.mkdir(_DIRECTORY_MODE, exist_ok=True)
    sync_directory(path.parent)


def unused_path(path: Path) -> Path:
    """Return a path, or one with a number after it where there is something already."""
    others = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return next((other for other in others if not other.exists()), path) if path.exists() else path


def aside_path(path: Path) -> Path:
    """Return a path beside another one, to set what is there aside under the present time."""
    return unused_path(path.with_name(f"{path.name}.{datetime.now(UTC):aside-%Y%m%dT%H%M%S}"))


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable. Raises OSError."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def is_plain_file(path: Path) -> bool:
    """Return whether a path, or what it links to, is a file, not a pipe or the like.

    Raises OSError where there is none.
    """
    return stat.S_ISREG(path.stat().st_mode)


def make_private(path: Path) -> None:
    """Make a file that only its owner reads, empty if there is none. Raises OSError."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, _FILE_MODE)
    try:
        if os.fstat(file).st_uid == os.geteuid():
            os.fchmod(file, _FILE_MODE)
    finally:
        os.close(file)
