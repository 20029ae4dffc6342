"""The commands `wolfstream snapshot`, which copy models, inspect them and check for damage."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wolfstream.service.cli.failures import Failure
from wolfstream.service.cli.options import (
    MODEL_NAME,
    NAME_RULE,
    Count,
    UserPath,
    data_option,
    file_errors,
)
from wolfstream.service.cli.tables import table
from wolfstream.service.cli.train import check_out

# numpy, numba and rich are imported when a command runs: help is quick.
if TYPE_CHECKING:
    from wolfstream.service.recovery.model_files import LoadedModel

_model_file = click.argument("file", type=UserPath(exists=True, dir_okay=False))


@click.group()
def snapshot() -> None:
    """Copy models out of data directories and into them, and check them for damage.

    A model file holds all of a model: spec, state, scores, sequence. `wolfstream train` writes
    model files too; `predict`, `evaluate` and `serve --load` read them.

    \b
    Examples:
      wolfstream snapshot export --data ./models prices --output prices.model
      wolfstream snapshot import --data ./other prices.model --name prices
      wolfstream snapshot verify ./models prices.model
      wolfstream snapshot inspect prices.model --json

    \b
    Exit codes:
      0    done; verify: nothing is damaged
      1    failed, with the reason; verify: something is damaged
      2    the command was used wrongly
      130  interrupted
    """  # noqa: D301  (click wants the control character)


@snapshot.command("export")
@data_option
@click.argument("model")
@click.option(
    "--output",
    "out",
    required=True,
    metavar="FILE",
    type=UserPath(dir_okay=False),
    help="The model file to write, whole or not at all.",
)
@click.option(
    "--sequence",
    type=Count(0),
    metavar="N",
    help="Export the kept snapshot of this sequence; GET .../history lists them.  [default: see "
    "above]",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def export_(data: Path, model: str, out: Path, sequence: int | None, force: bool) -> None:
    """Write a model of a data directory into a file.

    Without a server, the file has all acknowledged samples: the command learns those after the
    newest snapshot. While a server runs, the file has the newest snapshot; for a newer one, POST
    /v1/models/MODEL/snapshot first. The data directory is not changed.
    """
    check_out(out, force)
    from wolfstream.service.cli.display import Bar

    with file_errors():
        from wolfstream.service.recovery.directory_models import export_model
        from wolfstream.service.storage.snapshot_format import write_state

        with Bar(f"exporting {model}") as bar:

            def watch(reached: int, logged: int) -> None:
                bar.show(reached / max(logged, 1), f"{reached:,} of {logged:,} samples")

            exported = export_model(data, model, sequence, watch)
            write_state(out, exported.state)
    at, end = exported.state.plain["sequence"], exported.journal_end
    click.echo(f"{out}: {model} at sequence {at:,}, {_size(out)}")
    if end > at and sequence is None and not exported.while_serving:
        click.echo(
            f"{model} follows another model, whose log goes on to {end:,}: start a server, let it "
            "learn that, and export again to include it.",
            err=True,
        )
    elif end > at and sequence is None:
        click.echo(
            f"A server runs, and was at {end:,}: POST /v1/models/{model}/snapshot and "
            "export again to include what it has learned since.",
            err=True,
        )


@snapshot.command("import")
@data_option
@_model_file
@click.option("--name", required=True, help="Name of the model.")
def import_(data: Path, file: Path, name: str) -> None:
    """Add the model in a file to a data directory that no server uses.

    To add it to a server, start that with `serve --load`. The model has the sequence of the file,
    and no older snapshots.
    """
    if not MODEL_NAME.fullmatch(name):
        raise click.BadParameter(
            f"{name!r} cannot be the name of a model: {NAME_RULE}", param_hint="--name"
        )
    with file_errors():
        from wolfstream.service.recovery.directory_models import import_model
        from wolfstream.service.recovery.model_files import describe

        loaded = import_model(data, file, name)
    click.echo(f"{data}: {name}, {describe(loaded)}")


@snapshot.command()
@click.argument(
    "paths",
    metavar="PATH...",
    nargs=-1,
    required=True,
    type=UserPath(exists=True),
)
def verify(paths: tuple[Path, ...]) -> None:
    """Check model files and data directories for damage, and print a line for each problem.

    In a directory it checks the structure of the journal, each snapshot, and that the journal has
    no gap after the newest two snapshots, so that a server finds all acknowledged samples. Nothing
    is changed, and a server may use the directory meanwhile.
    """
    from wolfstream.service.cli.display import Bar

    problems = 0
    with file_errors():
        from wolfstream.service.recovery.verification import verified_bytes
        from wolfstream.service.recovery.verification import verify as verify_path

        done, total = 0, max(sum(map(verified_bytes, paths)), 1)
        with Bar("verifying") as bar:

            def watch(more: int) -> None:
                nonlocal done
                done += more
                bar.show(done / total, f"{done / 2**20:.1f} of {total / 2**20:.1f} MB")

            for path in paths:
                messages = list(verify_path(path, watch))
                problems += len(messages)
                click.echo("\n".join(messages) or f"{path}: whole")
    if problems:
        raise Failure("one problem" if problems == 1 else f"{problems} problems")


@snapshot.command()
@_model_file
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect(file: Path, as_json: bool) -> None:
    """Print the contents of a model file: spec, sequence, classes, scores, arrays."""
    with file_errors():
        from wolfstream.service.recovery.model_files import describe, load_model

        loaded = load_model(file)
        contents = _contents(file, loaded)
        if as_json:
            click.echo(json.dumps(contents, indent=2))
            return
        click.echo(f"{file}: {_size(file)}, {describe(loaded)}")
        for name in ("spec", "rolled_back", "heads"):
            click.echo(f"{name}: {json.dumps(contents[name], indent=2)}")
        _print_arrays(contents["arrays"])


def _contents(file: Path, loaded: "LoadedModel") -> dict[str, Any]:
    description = loaded.model.describe()
    names = ("sequence", "spec", "rows", "features", "rolled_back", "heads")
    return {
        "file": str(file),
        "bytes": file.stat().st_size,
        **{name: description[name] for name in names},
        "trained": loaded.trained or None,
        "arrays": [
            {
                "name": name,
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "bytes": array.nbytes,
            }
            for name, array in loaded.state.arrays.items()
        ],
    }


def _print_arrays(arrays: list[dict[str, Any]]) -> None:
    rows = [("ARRAY", "TYPE", "SHAPE", "BYTES")]
    for array in arrays:
        shape = " x ".join(map(str, array["shape"]))
        rows.append((array["name"], array["dtype"], shape, f"{array['bytes']:,}"))
    click.echo(table(rows))


def _size(path: Path) -> str:
    from rich.filesize import decimal

    return decimal(path.stat().st_size)
