"""The commands below `wolfstream models` that ask a running server: show, create, predict, ..."""

import json
from pathlib import Path
from typing import Any

import click

from wolfstream.service.cli.confirmation import confirmed
from wolfstream.service.cli.option_server import asking, server_option
from wolfstream.service.cli.option_values import read_json
from wolfstream.service.cli.tables import table
from wolfstream.service.errors.visible_text import visible

_model = click.argument("model")
_as_json = click.option("--json", "as_json", is_flag=True, help="Print the whole response as JSON.")


def list_served(url: str) -> None:
    """Print the models of a server."""
    with asking(url) as client:
        found = client.models()
    rows = [
        (one["model"], f"{one['sequence']:,}", str(one["features"] or "-"), one["status"])
        for one in found
    ]
    click.echo(table([("MODEL", "SEQUENCE", "FEATURES", "STATUS"), *rows]))


@click.command()
@_model
@server_option
@_as_json
def show(model: str, url: str, as_json: bool) -> None:
    """Describe MODEL: its rows, and how well each of its heads predicts."""
    with asking(url) as client:
        found = client.describe(model)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = found["rows"] or "no rows yet"
    click.echo(f"{found['model']} at sequence {found['sequence']:,}: {found['status']}")
    click.echo(f"rows: {rows}, {found['features'] or 0:,} features")
    for head, stats in found["heads"].items():
        serves = " (serves)" if head == found["spec"]["serve"] else ""
        click.echo(f"{head}{serves}: {_how_well(stats)}")
    for text in (found["notice"], found["warning"]):
        if text:
            click.echo(text)


@click.command()
@_model
@click.option(
    "--spec", metavar="JSON|@FILE", callback=read_json, help="Spec of the model.  [default: {}]"
)
@click.option(
    "--load",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Create it from this model file, which `wolfstream.save`, `train` or a server wrote.",
)
@server_option
def create(model: str, spec: Any, file: Path | None, url: str) -> None:
    """Create MODEL from a spec, or from a model file.

    A spec with "follows" makes a challenger of the model that it names, which learns what that one
    does: --spec '{"follows": "rooms", "seed": 7}'.

    A model that has this spec, or is in the file's state, is left as it is.
    """
    if spec is not None and file is not None:
        raise click.UsageError("use either --spec or --load: a model file contains its spec")
    with asking(url) as client:
        made = client.create(model, spec) if file is None else client.upload(model, file)
    click.echo(f"{made['model']} at sequence {made['sequence']:,}: {made['spec']['task']}")


@click.command()
@_model
@click.argument("rows", metavar="JSON|@FILE", callback=read_json)
@click.option("--head", help="Head that predicts.  [default: the one that serves]")
@click.option("--probability", is_flag=True, help="Print probabilities, or standard deviations.")
@server_option
def predict(model: str, rows: Any, head: str | None, probability: bool, url: str) -> None:
    """Print MODEL's predictions for rows, one line each.

    They are a list of rows, each a list or an object of named values; or a single row.
    """
    with asking(url) as client:
        try:
            ask = client.predict_proba if probability else client.predict
            predicted = ask(model, rows, head=head)
        except (TypeError, ValueError) as error:
            raise click.UsageError(f"the rows cannot be read: {error}") from None
    for i, prediction in enumerate(predicted.predictions):
        more = (
            []
            if predicted.classes is None or predicted.probabilities is None
            else predicted.probabilities[i]
        )
        named = zip(predicted.classes or (), more, strict=False)
        words = [str(prediction), *(f"{label}={share:.4f}" for label, share in named)]
        if predicted.deviations is not None:
            words.append(f"+-{predicted.deviations[i]:.6g}")
        click.echo(visible("  ".join(words)))


@click.command()
@_model
@server_option
@_as_json
def history(model: str, url: str, as_json: bool) -> None:
    """List the snapshots that MODEL can be rolled back to, newest first."""
    from rich.filesize import decimal

    with asking(url) as client:
        found = client.history(model)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows = [
        (
            f"{kept['sequence']:,}",
            kept["written"],
            f"{kept['samples_since']:,}",
            decimal(kept["bytes"]),
        )
        for kept in found["snapshots"]
    ]
    click.echo(table([("SEQUENCE", "WRITTEN", "SAMPLES SINCE", "SIZE"), *rows]))


@click.command()
@_model
@click.argument("sequence", type=click.IntRange(0))
@confirmed("Forget what the model has learned since?")
@server_option
def rollback(model: str, sequence: int, url: str) -> None:
    """Roll MODEL back to its snapshot at SEQUENCE; `history` lists the snapshots."""
    with asking(url) as client:
        found = client.rollback(model, sequence)
    click.echo(f"{found['model']} at sequence {found['sequence']:,} is as it was at {sequence:,}")


@click.command()
@_model
@server_option
@_as_json
def challengers(model: str, url: str, as_json: bool) -> None:
    """Compare MODEL with its challengers on the same samples.

    DIFFERENCE is above zero where the challenger is better. With a probability of 95%, BETWEEN
    contains the expected difference at all times.
    """
    with asking(url) as client:
        found = client.challengers(model)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    head = (
        "CHALLENGER",
        "LAG",
        "COMPARED",
        "LOSS",
        "CHAMPION'S",
        "DIFFERENCE",
        "BETWEEN",
        "BETTER",
    )
    click.echo(table([head, *map(_standing, found["challengers"])]))


@click.command()
@_model
@click.argument("challenger")
@confirmed("Exchange the two models?")
@server_option
def promote(model: str, challenger: str, url: str) -> None:
    """Exchange MODEL and its challenger CHALLENGER: each takes the other's spec and state.

    MODEL's former state is in its history: a rollback to it undoes the exchange.
    """
    with asking(url) as client:
        found = client.promote(model, challenger)
    at = found["rolled_back"]["at"]
    click.echo(f"{model} is now what {challenger} was; a rollback to {at} undoes it")


def _standing(row: dict[str, Any]) -> tuple[str, ...]:
    """Return a row of the scoreboard, in words."""
    first = row["model"], f"{row['lag']:,}", f"{row['samples']:,}"
    if row["interval"] is None:
        return (*first, *["-"] * 4, row["better"] or "-")
    low, high = row["interval"]
    losses = f"{row['loss']:.4g}", f"{row['champion_loss']:.4g}"
    between = f"{low:+.4f} {high:+.4f}"
    return (*first, *losses, f"{row['difference']:+.4f}", between, row["better"] or "not known")


def _how_well(stats: dict[str, Any]) -> str:
    """Return a head's scores and size, in words."""
    scores, words = stats["prequential"], []
    if scores.get("samples"):
        if scores.get("accuracy") is not None:
            words.append(f"{scores['accuracy']:.2%} of {scores['samples']:,} predictions correct")
            words.append(f"{scores['recent_accuracy']:.2%} of the last 1,000")
        elif scores.get("mae") is not None:
            words.append(f"MAE {scores['mae']:.4g} of {scores['samples']:,} predictions")
            words.append(f"{scores['recent_mae']:.4g} of the last 1,000")
    if "size" in stats:
        words.append(f"{stats['size']:,} samples in the set")
    return ", ".join(words) or "no predictions scored yet"
