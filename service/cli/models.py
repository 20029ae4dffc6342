"""The commands `wolfstream models`: of a running server, or of a data directory without one."""

from pathlib import Path

import click

from wolfstream.service.cli.options import (
    UserPath,
    ask_first,
    data_option,
    file_errors,
    server_option,
)
from wolfstream.service.cli.served_models import (
    challengers,
    create,
    history,
    list_served,
    predict,
    promote,
    rollback,
    show,
)
from wolfstream.service.cli.watch import watch

_model = click.argument("model")


@click.group()
def models() -> None:
    """Show, create, query and roll back the models of a server.

    They use the server at --url, with the API key in the variable WOLFSTREAM_KEY, if it needs one.

    With --data, `list` shows the models of a data directory and needs no server. `skip` and
    `delete` always work on a data directory without a server: they are for models that a server
    cannot recover. `wolfstream snapshot export --sequence N` writes a snapshot of such a model into
    a file, and `wolfstream snapshot verify` says what is damaged.

    \b
    Examples:
      wolfstream models list
      wolfstream models create rooms --load rooms.model
      wolfstream models predict rooms '[[20, 41]]' --probability
      wolfstream models watch rooms
      wolfstream models list --data ./models
      wolfstream models skip prices --data ./models
      wolfstream models delete prices --data ./models
    """  # noqa: D301  (click wants the control character)


@models.command("list")
@click.option(
    "--data",
    type=UserPath(file_okay=False),
    help="List the models of this data directory, with their snapshots; no server is asked.",
)
@server_option
def list_(data: Path | None, url: str) -> None:
    """List the models of a server, or of a data directory."""
    if data is None:
        list_served(url)
        return
    with file_errors():
        from wolfstream.service.recovery.directory_models import model_statuses

        for model in model_statuses(data):
            snapshots = ", ".join(map(str, model.snapshots)) or "none"
            skipped = "; skipped at the next start" if model.left_out else ""
            click.echo(f"{model.name} at sequence {model.sequence}, snapshots {snapshots}{skipped}")


@models.command()
@data_option
@_model
def skip(data: Path, model: str) -> None:
    """Skip the replay of MODEL at the next start, which then serves its last snapshot.

    Its journal is kept. It learns nothing until it is rolled back, or until `wolfstream serve
    --recover` tries the replay again.
    """
    with file_errors():
        from wolfstream.service.recovery.directory_models import leave_out

        sequence = leave_out(data, model)
    click.echo(f"{data}: {model} will serve its state at sequence {sequence}, and learn nothing")


@models.command()
@data_option
@_model
@ask_first("Delete the model with everything that it learned?")
def delete(data: Path, model: str) -> None:
    """Delete MODEL with its journal and its snapshots."""
    with file_errors():
        from wolfstream.service.recovery.directory_models import delete as remove

        remove(data, model)
    click.echo(f"{data}: {model} is deleted")


for command in (show, create, predict, history, rollback, challengers, promote, watch):
    models.add_command(command)
