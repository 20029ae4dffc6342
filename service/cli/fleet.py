"""The command `wolfstream fleet`: work on the models of a whole fleet."""

from pathlib import Path

import click

from wolfstream.service.cli.failures import Failure
from wolfstream.service.cli.options import UserPath, fleet_option, open_fleet_at

_servers = fleet_option("NATS servers, separated by commas.", required=True)


@click.group()
def fleet() -> None:
    """Manage a fleet: many servers that share their models through NATS JetStream.

    `wolfstream serve --fleet` runs one of them. `wolfstream keys --fleet` manages who may use all.
    """


@fleet.command("import")
@click.argument("directory", type=UserPath(exists=True, file_okay=False))
@_servers
def import_(directory: Path, servers: str) -> None:
    """Copy the models of a data directory into a fleet, with their sequences and keys.

    No server may run on DIRECTORY, which is not changed; it may be a backup. If the fleet has a
    model of the same name, nothing is imported, unless an earlier import of DIRECTORY has copied
    that model before it failed. After a failure, run the command again.

    \b
    Example:
      wolfstream fleet import ./models --fleet nats://a:4222,nats://b:4222,nats://c:4222
    """  # noqa: D301  (click wants the control character)
    with open_fleet_at(servers) as member:
        from wolfstream.service.fleet.api_keys import FleetKeys
        from wolfstream.service.fleet.importing import import_models

        for moved in import_models(directory, member, FleetKeys(member.nats)):
            prefix = "the fleet has it already, with " if moved.before else ""
            click.echo(f"{moved.model}: {prefix}{moved.sequence:,} samples")


@fleet.command()
@_servers
def verify(servers: str) -> None:
    """Check a fleet's logs for faults, and say what to do about each.

    Faults are two commits of samples at one sequence, a key that was learned twice, a commit of a
    replica whose term was over, or a missing state. Replicas may run meanwhile; nothing is changed.
    Exits with 1 if there is a fault.

    \b
    Example:
      wolfstream fleet verify --fleet nats://a:4222,nats://b:4222,nats://c:4222
    """  # noqa: D301  (click wants the control character)
    with open_fleet_at(servers) as member:
        from wolfstream.service.fleet.verification import verify as verify_logs

        n_faults = 0
        for model, faults in verify_logs(member):
            click.echo(f"{model}: {'ok' if not faults else ''}".rstrip())
            for fault in faults:
                click.echo(f"  {fault}")
            n_faults += len(faults)
    if n_faults:
        raise Failure(f"{n_faults} {'fault was' if n_faults == 1 else 'faults were'} found")


@fleet.command()
@click.argument("directory", type=UserPath(file_okay=False))
@_servers
def export(directory: Path, servers: str) -> None:
    """Copy all models of a fleet into a new data directory, even while it learns.

    A server can run on DIRECTORY. It has everything that was acknowledged before the command
    began, and the idempotency keys, but no API keys; `wolfstream backup --fleet` copies those, too.

    \b
    Example:
      wolfstream fleet export /mnt/backups/monday --fleet nats://a:4222
    """  # noqa: D301  (click wants the control character)
    with open_fleet_at(servers) as member:
        from wolfstream.service.fleet.exporting import export_models

        for moved in export_models(member, directory):
            click.echo(f"{moved.model}: {moved.sequence:,} samples")
