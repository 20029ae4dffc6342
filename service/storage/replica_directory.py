"""The directory of a replica of a fleet, and which fleet it remembers.

The file `DIR/fleet` has the fleet's name. The other files of the directory name models by their
numbers, which another fleet gives to other models.
"""

import logging
import os
from datetime import UTC, datetime
from pathlib import Path

from wolfstream.service.errors import StartupError
from wolfstream.service.storage.data_directory import (
    fleet_path,
    high_water_path,
    journal_path,
    replays_path,
    side_path,
)
from wolfstream.service.storage.directories import (
    make_directory,
    make_private,
    sync_directory,
    unused_path,
)

logger = logging.getLogger(__name__)


def remember_fleet(data: Path, fleet: str) -> None:
    """Let a directory be a replica's of a fleet; what it remembers of another one is set aside.

    A directory without a name, as older versions have left it, is taken for one of this fleet.
    Raises StartupError.
    """
    if journal_path(data).exists():
        raise StartupError(
            f"{data} is the data directory of a server of its own, with models: name another one "
            f"with --data, and copy its models with `wolfstream fleet import {data}`"
        )
    try:
        before = _fleet_of(data)
        if before not in (fleet, ""):
            logger.warning(
                "%s was the directory of a replica of another fleet, %s; this one is %s. What it "
                "remembered of that one is in %s now",
                *(data, before, fleet, _set_aside(data)),
            )
        if before != fleet:
            _write(data, fleet)
    except OSError as error:
        raise StartupError(
            f"the data directory {data} cannot be used: {error}; choose another with --data"
        ) from None


def _fleet_of(data: Path) -> str:
    path = fleet_path(data)
    return path.read_text(errors="replace").strip() if path.exists() else ""


def _set_aside(data: Path) -> Path:
    """Move the files about models into a directory; return the directory."""
    aside = unused_path(data / f"{datetime.now(UTC):aside-%Y%m%dT%H%M%S}")
    make_directory(aside)
    for path in (high_water_path(data), replays_path(data)):
        if path.exists():
            path.rename(aside / path.name)
    for path in data.glob(f"{side_path(data).name}*"):  # with its write-ahead file
        path.rename(aside / path.name)
    sync_directory(aside)
    sync_directory(data)
    return aside


def _write(data: Path, fleet: str) -> None:
    whole = fleet_path(data).with_suffix(".new")
    make_private(whole)
    with whole.open("w") as file:
        file.write(f"{fleet}\n")
        file.flush()
        os.fsync(file.fileno())
    whole.rename(fleet_path(data))
    sync_directory(data)
