"""The commands `wolfstream backup` and `restore`, for a whole data directory or fleet."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wolfstream.service.cli.failures import as_failures
from wolfstream.service.cli.options import UserPath, data_option, fleet_option, open_fleet_at

# numpy is imported when a command runs: help is quick.
if TYPE_CHECKING:
    from wolfstream.service.storage.backup import Reach
    from wolfstream.service.storage.restore import RestorePoint


@click.command()
@data_option
@fleet_option("NATS servers of a fleet to copy instead of --data.")
@click.argument("directory", type=UserPath())
def backup(data: Path, servers: str, directory: Path) -> None:
    """Copy a data directory, or a fleet, into DIRECTORY, also while it learns.

    The backup has everything that was acknowledged before it began, for all models, and the API
    keys. The command prints the sequences of each model that `wolfstream restore --to` can restore.
    To bring a restored directory into a new fleet, use `wolfstream fleet import`.

    \b
    Examples:
      wolfstream backup --data ./models /mnt/backups/monday
      wolfstream backup --fleet nats://a:4222,nats://b:4222 /mnt/backups/monday
    """  # noqa: D301  (click wants the control character)
    if servers:
        with open_fleet_at(servers) as member:
            from wolfstream.service.fleet.api_keys import FleetKeys
            from wolfstream.service.fleet.exporting import back_up as back_up_fleet

            _print(directory, back_up_fleet(member, FleetKeys(member.nats), directory))
        return
    from wolfstream.service.storage.backup import back_up

    with as_failures(directory):
        reaches = back_up(data, directory, also=(data / "keys.json",))
    _print(directory, reaches)


@click.command()
@data_option
@click.argument("directory", type=UserPath(exists=True, file_okay=False))
@click.option(
    "--to",
    metavar="MODEL@SEQUENCE|TIME",
    help="Restore an earlier point: a sequence of one model, or a time for all models, such as "
    "2026-03-01T09:30:00Z (local without a zone).  [default: the end of the backup]",
)
def restore(data: Path, directory: Path, to: str | None) -> None:
    """Create a data directory from the backup in DIRECTORY.

    The data directory must not exist yet; start a server on it afterwards. Each model begins a new
    epoch. Samples that were learned together stay together, so a sequence among them restores the
    state before them. A backup does not have models that were deleted before it was made.

    \b
    Examples:
      wolfstream restore --data ./models-restored /mnt/backups/monday
      wolfstream restore --data ./earlier /mnt/backups/monday --to rooms@1200
    """  # noqa: D301  (click wants the control character)
    from wolfstream.service.storage.restore import restore as restore_backup

    point = None if to is None else _read_point(to)
    with as_failures(data):
        reaches = restore_backup(directory, data, point)
    _print(data, reaches)


def _read_point(text: str) -> "RestorePoint":
    from wolfstream.service.storage.restore import RestorePoint

    model, at, sequence = text.rpartition("@")
    if at and model and sequence.isascii() and sequence.isdecimal():
        return RestorePoint(model=model, sequence=int(sequence))
    try:
        # A time near the ends of the calendar has no timestamp in some time zones.
        seconds = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{text!r} is neither MODEL@SEQUENCE nor a time such as 2026-03-01T09:30:00Z",
            param_hint="--to",
        ) from None
    return RestorePoint(time=int(seconds * 1000))


def _print(directory: Path, reaches: "list[Reach]") -> None:
    click.echo(f"{directory}: {len(reaches)} models")
    for reach in reaches:
        click.echo(f"  {reach.model} at sequence {reach.newest}, back to {reach.oldest}")
