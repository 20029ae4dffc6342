"""The command `wolfstream fleet`: what concerns many replicas together."""

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from service.cli.failures import Failure

if TYPE_CHECKING:
    from service.fleet.opening import Fleet

_servers = click.option(
    "--fleet",
    "servers",
    metavar="URLS",
    envvar="WOLFSTREAM_FLEET",
    required=True,
    help="Servers of NATS, separated by commas.  [WOLFSTREAM_FLEET]",
)


@click.group()
def fleet() -> None:
    """Manage a fleet: many servers that share their models through NATS JetStream.

    `wolfstream serve --fleet` runs one of them. `wolfstream keys --fleet` manages who may use all.
    """


@contextmanager
def _joined(servers: str) -> "Iterator[Fleet]":
    """The fleet at some servers; what goes wrong with it ends the command."""
    from service.errors import Refusal, WolfstreamError
    from service.settings import Settings

    try:
        from service.fleet.opening import connect, open_fleet
    except ModuleNotFoundError:
        raise Failure("a fleet needs the client of NATS: pip install 'wolfstream[fleet]'") from None
    settings = Settings()
    try:
        nats = connect(servers.split(","), settings.fleet_log_bytes, settings.fleet_state_bytes)
        with tempfile.TemporaryDirectory() as own, closing(nats):
            yield open_fleet(nats, Path(own))
    except Refusal as error:
        raise Failure(error.detail) from None
    except WolfstreamError as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(f"{error.filename or 'the fleet'}: {error.strerror or error}") from None


@fleet.command("import")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@_servers
def import_(directory: Path, servers: str) -> None:
    """Bring the models of a data directory into a fleet, with their sequences and keys.

    No server may run on DIRECTORY, which stays as it is; one that `wolfstream backup` made will do,
    too. Models that the fleet has already are not touched: then nothing is brought in.

    \b
    Example:
      wolfstream fleet import ./models --fleet nats://a:4222,nats://b:4222,nats://c:4222
    """  # noqa: D301  (click wants the control character)
    with _joined(servers) as member:
        from service.fleet.api_keys import FleetKeys
        from service.fleet.moving import bring_in

        for moved in bring_in(directory, member, FleetKeys(member.nats)):
            click.echo(f"{moved.model}: {moved.sequence:,} samples")


@fleet.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@_servers
def export(directory: Path, servers: str) -> None:
    """Make a data directory of all models of a fleet, also while it learns.

    A server can run on DIRECTORY, and `import` brings it into another fleet: it is a backup. It has
    what each model had acknowledged before, and the idempotency keys, but no API keys.

    \b
    Example:
      wolfstream fleet export /mnt/backups/monday --fleet nats://a:4222
    """  # noqa: D301  (click wants the control character)
    with _joined(servers) as member:
        from service.fleet.taking_out import take_out

        for moved in take_out(member, directory):
            click.echo(f"{moved.model}: {moved.sequence:,} samples")
