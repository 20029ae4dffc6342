"""The commands `wolfstream backup` and `restore`, for a whole data directory or fleet."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wolfstream.service.cli.failures import Failure
from wolfstream.service.cli.option_data import data_option
from wolfstream.service.cli.option_fleet import open_fleet_at

# numpy is imported when a command runs: help is quick.
if TYPE_CHECKING:
    from wolfstream.service.storage.reach import Reach
    from wolfstream.service.storage.restore import RestorePoint


@click.command()
@data_option
@click.option(
    "--fleet",
    metavar="URLS",
    envvar="WOLFSTREAM_FLEET",
    default="",
    help="NATS servers of a fleet to copy instead of --data.  [WOLFSTREAM_FLEET]",
)
@click.argument("directory", type=click.Path(path_type=Path))
def backup(data: Path, fleet: str, directory: Path) -> None:
    """Copy a data directory, or a fleet, into DIRECTORY, also while it learns.

    The backup has everything that was acknowledged before it began, for all models, and the API
    keys. The command prints the sequences of each model that `wolfstream restore --to` can restore.
    To bring a restored directory into a new fleet, use `wolfstream fleet import`.

    \b
    Examples:
      wolfstream backup --data ./models /mnt/backups/monday
      wolfstream backup --fleet nats://a:4222,nats://b:4222 /mnt/backups/monday
    """  # noqa: D301  (click wants the control character)
    if fleet:
        with open_fleet_at(fleet) as member:
            from wolfstream.service.fleet.api_keys import FleetKeys
            from wolfstream.service.fleet.exporting import back_up as back_up_fleet

            _print(directory, back_up_fleet(member, FleetKeys(member.nats), directory))
        return
    from wolfstream.service.errors import StartupError, WolfstreamError
    from wolfstream.service.storage.backup import back_up

    try:
        reaches = back_up(data, directory, also=(data / "keys.json",))
    except (WolfstreamError, StartupError) as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(f"{error.filename or directory}: {error.strerror or error}") from None
    _print(directory, reaches)


@click.command()
@data_option
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
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
    from wolfstream.service.errors import StartupError, WolfstreamError
    from wolfstream.service.storage.restore import restore as restore_backup

    point = None if to is None else _read_point(to)
    try:
        reaches = restore_backup(directory, data, point)
    except (WolfstreamError, StartupError) as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(f"{error.filename or data}: {error.strerror or error}") from None
    _print(data, reaches)


def _read_point(text: str) -> "RestorePoint":
    from wolfstream.service.storage.restore import RestorePoint

    model, at, sequence = text.rpartition("@")
    if at and model and sequence.isascii() and sequence.isdecimal():
        return RestorePoint(model=model, sequence=int(sequence))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither MODEL@SEQUENCE nor a time such as 2026-03-01T09:30:00Z",
            param_hint="--to",
        ) from None
    return RestorePoint(time=int(moment.timestamp() * 1000))


def _print(directory: Path, reaches: "list[Reach]") -> None:
    click.echo(f"{directory}: {len(reaches)} models")
    for reach in reaches:
        click.echo(f"  {reach.model} at sequence {reach.newest}, back to {reach.oldest}")
