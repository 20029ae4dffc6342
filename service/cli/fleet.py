"""The command `wolfstream fleet`: what concerns many replicas together."""

from pathlib import Path

import click

from wolfstream.service.cli.failures import Failure
from wolfstream.service.cli.option_fleet import joined

_servers = click.option(
    "--fleet",
    "servers",
    metavar="URLS",
    envvar="WOLFSTREAM_FLEET",
    required=True,
    help="NATS servers, separated by commas.  [WOLFSTREAM_FLEET]",
)


@click.group()
def fleet() -> None:
    """Manage a fleet: many servers that share their models through NATS JetStream.

    `wolfstream serve --fleet` runs one of them. `wolfstream keys --fleet` manages who may use all.
    """


@fleet.command("import")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@_servers
def import_(directory: Path, servers: str) -> None:
    """Copy the models of a data directory into a fleet, with their sequences and keys.

    No server may run on DIRECTORY, which stays as it is; one that `wolfstream backup` made will do,
    too. Models that the fleet has already are not touched: then nothing is brought in, unless an
    earlier import of DIRECTORY has failed after them. After a failure, run it again.

    \b
    Example:
      wolfstream fleet import ./models --fleet nats://a:4222,nats://b:4222,nats://c:4222
    """  # noqa: D301  (click wants the control character)
    with joined(servers) as member:
        from wolfstream.service.fleet.api_keys import FleetKeys
        from wolfstream.service.fleet.importing import import_models

        for moved in import_models(directory, member, FleetKeys(member.nats)):
            there = "the fleet has it already, with " if moved.before else ""
            click.echo(f"{moved.model}: {there}{moved.sequence:,} samples")


@fleet.command()
@_servers
def verify(servers: str) -> None:
    """Look for what cannot be in a fleet's logs, and say what to do about it.

    Two commits of samples in one place, a key that was learned twice, a commit of a replica whose
    term was over, a missing state. Replicas may run meanwhile; nothing is changed. Ends with 1 if
    something is wrong.

    \b
    Example:
      wolfstream fleet verify --fleet nats://a:4222,nats://b:4222,nats://c:4222
    """  # noqa: D301  (click wants the control character)
    with joined(servers) as member:
        from wolfstream.service.fleet.verification import verify as verify_logs

        wrong = 0
        for model, faults in verify_logs(member):
            click.echo(f"{model}: {'ok' if not faults else ''}".rstrip())
            for fault in faults:
                click.echo(f"  {fault}")
            wrong += len(faults)
    if wrong:
        raise Failure(f"{wrong} {'fault was' if wrong == 1 else 'faults were'} found")


@fleet.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@_servers
def export(directory: Path, servers: str) -> None:
    """Copy all models of a fleet into a new data directory, even while it learns.

    A server can run on DIRECTORY. It has what each model had acknowledged before, and the
    idempotency keys, but no API keys; `wolfstream backup --fleet` copies those, too.

    \b
    Example:
      wolfstream fleet export /mnt/backups/monday --fleet nats://a:4222
    """  # noqa: D301  (click wants the control character)
    with joined(servers) as member:
        from wolfstream.service.fleet.exporting import export_models

        for moved in export_models(member, directory):
            click.echo(f"{moved.model}: {moved.sequence:,} samples")
