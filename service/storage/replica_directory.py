"""The directory of a fleet's replica, and the fleet that it belongs to: the file `DIR/fleet`.

The other files of the directory refer to models by number, and another fleet has other models under
these numbers. So a directory that changes its fleet starts afresh.
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


def assign_to_fleet(data: Path, fleet: str) -> None:
    """Record that a directory belongs to a fleet's replica; set files of another fleet aside.

    Raises StartupError, also for the data directory of a server without a fleet.
    """
    if journal_path(data).exists():
        raise StartupError(
            f"{data} is the data directory of a server without a fleet, with models: name another "
            f"with --data, and copy its models with `wolfstream fleet import {data}`"
        )
    try:
        before = _read_fleet(data)
        if before not in (fleet, ""):
            logger.warning(
                "replica's directory belonged to another fleet, its files were set aside: path=%s "
                "fleet=%s before=%s aside=%s",
                *(data, fleet, before, _set_aside(data)),
            )
        if before != fleet:
            _write_fleet(data, fleet)
    except OSError as error:
        raise StartupError(
            f"the data directory {data} cannot be used: {error}; choose another with --data"
        ) from None


def _read_fleet(data: Path) -> str:
    """Return the fleet's name in a directory; "" if it has none."""
    path = fleet_path(data)
    return path.read_text(errors="replace").strip() if path.exists() else ""


def _set_aside(data: Path) -> Path:
    """Move the files about models into a new directory; return its path."""
    aside = unused_path(data / f"{datetime.now(UTC):aside-%Y%m%dT%H%M%S}")
    make_directory(aside)
    for path in (high_water_path(data), replays_path(data)):
        if path.exists():
            path.rename(aside / path.name)
    for path in data.glob(f"{side_path(data).name}*"):  # the database and its write-ahead file
        path.rename(aside / path.name)
    sync_directory(aside)
    sync_directory(data)
    return aside


def _write_fleet(data: Path, fleet: str) -> None:
    """Write the fleet's name, durably and atomically."""
    new = fleet_path(data).with_suffix(".new")
    make_private(new)
    with new.open("w") as file:
        file.write(f"{fleet}\n")
        file.flush()
        os.fsync(file.fileno())
    new.rename(fleet_path(data))
    sync_directory(data)
