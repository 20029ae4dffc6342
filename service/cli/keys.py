"""The command `wolfstream keys`: the API keys of a server."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wolfstream.service.cli.failures import as_failures
from wolfstream.service.cli.options import (
    MODEL_NAME,
    NAME_RULE,
    data_option,
    fleet_errors,
    fleet_option,
)
from wolfstream.service.cli.tables import table

# pydantic is imported when a command runs: help is quick.
if TYPE_CHECKING:
    from collections.abc import Iterator

    from wolfstream.service.access.keys import ApiKeys, Key

_fleet = fleet_option("NATS servers of a fleet, to manage its keys instead.")


def _check_name(_: click.Context, __: click.Parameter, value: str | None) -> str:
    """Return the value if a model's name could begin with it; an absent value is empty."""
    if value is not None and not MODEL_NAME.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not a name: {NAME_RULE}")
    return value or ""


@contextmanager
def _stored_keys(data: Path, servers: str) -> "Iterator[ApiKeys]":
    """Yield the keys of a data directory or fleet; their errors become Failures."""
    if not servers:
        from wolfstream.service.access.key_file import KeyFile

        with as_failures(data):
            yield KeyFile(data)
        return
    from wolfstream.service.settings import Settings

    with fleet_errors():
        from wolfstream.service.fleet.opening import keys_at
        from wolfstream.service.server.joining import nats_login

        with keys_at(servers.split(","), nats_login(Settings())) as keys:
            yield keys


@click.group()
def keys() -> None:
    """Manage who may use a server.

    A server without keys serves its own machine only, unless it is started with --insecure. Once
    there is a key, every request needs one: `Authorization: Bearer KEY`. The commands work before
    the first start, and also while the server runs, which notices a change within a second. A
    revoked key is refused from then on. A websocket that was opened with it gets the responses that
    are due, and is closed with code 1008.

    \b
    Scopes:
      predict  predict, list and describe models
      learn    the same, and learn (a learning response contains predictions in any case)
      admin    everything: create, delete and roll back models too

    A quota counts rows, learned or predicted. A batch of any size is accepted while there is
    credit. If it uses more than that, the next one has to wait until the debt is paid off.

    \b
    Examples:
      wolfstream keys add --name ops --scope admin
      wolfstream keys add --name sensors --scope learn --prefix sensor-
      wolfstream keys list
      wolfstream keys revoke sensors
      wolfstream keys list --fleet nats://a:4222,nats://b:4222

    The data directory has a hash of each key, in keys.json. To do without keys again, stop the
    server, delete this file, and start the server once with --no-keys. Without this option, a
    server whose keys are gone does not start, because it would let everybody in.
    """  # noqa: D301  (click wants the control character)


@keys.command()
@data_option
@_fleet
@click.option("--name", required=True, callback=_check_name, help="Name of the key in listings.")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["predict", "learn", "admin"]),
    multiple=True,
    required=True,
    help="What the key allows; repeatable.",
)
@click.option(
    "--prefix",
    metavar="P",
    callback=_check_name,
    help="Allow only models whose names begin with P.",
)
@click.option(
    "--samples-per-second",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Rows to learn or predict, on average; more are refused with 429.  [default: any]",
)
def add(data: Path, servers: str, **options: Any) -> None:
    """Create a key and print it once."""
    from wolfstream.service.access.keys import add_key
    from wolfstream.service.storage.key_mark import FileKeyMark

    with _stored_keys(data, servers) as keys:
        key = add_key(keys, **options)
        if not servers:
            FileKeyMark(data).set(True)  # the next start moves it into the journal
    click.echo(key)
    click.echo("Keep it: it cannot be shown again.", err=True)


@keys.command("list")
@data_option
@_fleet
def list_(data: Path, servers: str) -> None:
    """List the keys, without the keys themselves."""
    with _stored_keys(data, servers) as keys:
        stored, place = keys.read(), keys.name if servers else data
    if not stored:
        clients = "anyone who reaches it" if stored is None else "no one"
        click.echo(f"No keys in {place}: a server there serves {clients}.", err=True)
        return
    rows = [("NAME", "KEY", "SCOPES", "MODELS", "SAMPLES/S", "CREATED"), *map(_row, stored)]
    click.echo(table(rows))


def _row(key: "Key") -> tuple[str, ...]:
    """Return a row of the listing, with the part of the key that is not secret."""
    models, created = f"{key.prefix}*", f"{key.created:%Y-%m-%d %H:%M} UTC"
    quota = "any" if key.samples_per_second is None else f"{key.samples_per_second:g}"
    return key.name, f"{key.id}_...", ",".join(key.scopes), models, quota, created


@keys.command()
@data_option
@_fleet
@click.argument("name")
def revoke(data: Path, servers: str, name: str) -> None:
    """Revoke a key."""
    from wolfstream.service.access.keys import revoke_key

    with _stored_keys(data, servers) as keys:
        revoke_key(keys, name)
    click.echo(f"{name} is revoked; a running server refuses it within a second.", err=True)
