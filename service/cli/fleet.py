"""The command `wolfstream fleet`: what concerns many replicas together."""

import tempfile
from contextlib import closing
from pathlib import Path

import click

from service.cli.failures import Failure


@click.group()
def fleet() -> None:
    """Manage a fleet: many servers that share their models through NATS JetStream.

    `wolfstream serve --fleet` runs one of them. `wolfstream keys --fleet` manages who may use all.
    """


@fleet.command("import")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--fleet",
    "servers",
    metavar="URLS",
    envvar="WOLFSTREAM_FLEET",
    required=True,
    help="Servers of NATS, separated by commas.  [WOLFSTREAM_FLEET]",
)
def import_(directory: Path, servers: str) -> None:
    """Bring the models of a data directory into a fleet, with their sequences and keys.

    No server may run on DIRECTORY, which stays as it is; one that `wolfstream backup` made will do,
    too. A model that the fleet has under the same name is not touched.

    \b
    Example:
      wolfstream fleet import ./models --fleet nats://a:4222,nats://b:4222,nats://c:4222
    """  # noqa: D301  (click wants the control character)
    from service.errors import Refusal, WolfstreamError
    from service.settings import Settings

    try:
        from service.fleet.api_keys import FleetKeys
        from service.fleet.moving import bring_in
        from service.fleet.opening import connect, open_fleet
    except ModuleNotFoundError:
        raise Failure("a fleet needs the client of NATS: pip install 'wolfstream[fleet]'") from None
    settings = Settings()
    try:
        nats = connect(servers.split(","), settings.fleet_log_bytes, settings.fleet_state_bytes)
        with tempfile.TemporaryDirectory() as own, closing(nats):
            member = open_fleet(nats, Path(own))
            for moved in bring_in(directory, member, FleetKeys(nats)):
                click.echo(f"{moved.model}: {moved.sequence:,} samples")
    except Refusal as error:
        raise Failure(error.detail) from None
    except WolfstreamError as error:
        raise Failure(str(error)) from None
