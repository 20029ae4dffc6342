"""The commands `wolfstream models` that call a running server: show, create, predict, ..."""

import json
from pathlib import Path
from typing import Any

import click

from wolfstream.service.cli.options import (
    Count,
    UserPath,
    ask_first,
    read_json,
    server_client,
    server_option,
)
from wolfstream.service.cli.tables import table
from wolfstream.service.errors import visible

_model = click.argument("model")
_as_json = click.option("--json", "as_json", is_flag=True, help="Print the whole response as JSON.")


def list_served(url: str) -> None:
    """Print the models of a server."""
    with server_client(url) as client:
        models = client.models()
    rows = [
        (model["model"], f"{model['sequence']:,}", str(model["features"] or "-"), model["status"])
        for model in models
    ]
    click.echo(table([("MODEL", "SEQUENCE", "FEATURES", "STATUS"), *rows]))


@click.command()
@_model
@server_option
@_as_json
def show(model: str, url: str, as_json: bool) -> None:
    """Describe MODEL: its rows, and how well each of its heads predicts."""
    with server_client(url) as client:
        description = client.describe(model)
    if as_json:
        click.echo(json.dumps(description, indent=2))
        return
    rows, features = description["rows"] or "no rows yet", description["features"] or 0
    name, sequence = description["model"], description["sequence"]
    click.echo(f"{name} at sequence {sequence:,}: {description['status']}")
    click.echo(f"rows: {rows}, {features:,} features")
    for head, stats in description["heads"].items():
        serves = " (serves)" if head == description["spec"]["serve"] else ""
        click.echo(f"{head}{serves}: {_score_words(stats)}")
    for text in (description["notice"], description["warning"]):
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
    type=UserPath(exists=True, dir_okay=False),
    help="Create it from this model file, which `wolfstream.save`, `train` or a server wrote.",
)
@server_option
def create(model: str, spec: Any, file: Path | None, url: str) -> None:
    """Create MODEL from a spec, or from a model file.

    A spec with "follows" makes a challenger, which learns the same samples as the model that it
    names: --spec '{"follows": "rooms", "seed": 7}'.

    A model that already has this spec, or the file's state, is left as it is.
    """
    if spec is not None and file is not None:
        raise click.UsageError("use either --spec or --load: a model file contains its spec")
    with server_client(url) as client:
        created = client.create(model, spec) if file is None else client.upload(model, file)
    sequence, task = created["sequence"], created["spec"]["task"]
    click.echo(f"{created['model']} at sequence {sequence:,}: {task}")


@click.command()
@_model
@click.argument("rows", metavar="JSON|@FILE", callback=read_json)
@click.option("--head", help="Head that predicts.  [default: the one that serves]")
@click.option("--probability", is_flag=True, help="Print probabilities, or standard deviations.")
@server_option
def predict(model: str, rows: Any, head: str | None, probability: bool, url: str) -> None:
    """Print MODEL's predictions for rows, one line each.

    The JSON is a list of rows, each a list or an object of named values; or a single row.
    """
    with server_client(url) as client:
        try:
            call = client.predict_proba if probability else client.predict
            result = call(model, rows, head=head)
        except (TypeError, ValueError) as error:
            raise click.UsageError(f"the rows cannot be read: {error}") from None
    for i, prediction in enumerate(result.predictions):
        words = [str(prediction)]
        if result.classes is not None and result.probabilities is not None:
            pairs = zip(result.classes, result.probabilities[i], strict=True)
            words += [f"{label}={share:.4f}" for label, share in pairs]
        if result.deviations is not None:
            words.append(f"+-{result.deviations[i]:.6g}")
        click.echo(visible("  ".join(words)))


@click.command()
@_model
@server_option
@_as_json
def history(model: str, url: str, as_json: bool) -> None:
    """List the snapshots that MODEL can be rolled back to, newest first."""
    from rich.filesize import decimal

    with server_client(url) as client:
        response = client.history(model)
    if as_json:
        click.echo(json.dumps(response, indent=2))
        return
    rows = [
        (
            f"{snapshot['sequence']:,}",
            snapshot["written"],
            f"{snapshot['samples_since']:,}",
            decimal(snapshot["bytes"]),
        )
        for snapshot in response["snapshots"]
    ]
    click.echo(table([("SEQUENCE", "WRITTEN", "SAMPLES SINCE", "SIZE"), *rows]))


@click.command()
@_model
@click.argument("sequence", type=Count(0))
@ask_first("Forget what the model has learned since?")
@server_option
def rollback(model: str, sequence: int, url: str) -> None:
    """Roll MODEL back to its snapshot at SEQUENCE; `history` lists the snapshots."""
    with server_client(url) as client:
        outcome = client.rollback(model, sequence)
    name, new_sequence = outcome["model"], outcome["sequence"]
    click.echo(f"{name} at sequence {new_sequence:,} is as it was at {sequence:,}")


@click.command()
@_model
@server_option
@_as_json
def challengers(model: str, url: str, as_json: bool) -> None:
    """Compare MODEL with its challengers on the same samples.

    DIFFERENCE is above zero if the challenger is better. With a probability of 95%, BETWEEN
    contains the expected difference at all times.
    """
    with server_client(url) as client:
        response = client.challengers(model)
    if as_json:
        click.echo(json.dumps(response, indent=2))
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
    click.echo(table([head, *map(_scoreboard_row, response["challengers"])]))


@click.command()
@_model
@click.argument("challenger")
@ask_first("Exchange the two models?")
@server_option
def promote(model: str, challenger: str, url: str) -> None:
    """Exchange MODEL and its challenger CHALLENGER: each takes the other's spec and state.

    MODEL's former state is in its history: a rollback to it undoes the exchange.
    """
    with server_client(url) as client:
        description = client.promote(model, challenger)
    at = description["rolled_back"]["at"]
    click.echo(f"{model} is now what {challenger} was; a rollback to {at} undoes it")


def _scoreboard_row(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a challenger in the scoreboard."""
    first = row["model"], f"{row['lag']:,}", f"{row['samples']:,}"
    if row["interval"] is None:
        return (*first, *["-"] * 4, row["better"] or "-")
    low, high = row["interval"]
    losses = f"{row['loss']:.4g}", f"{row['champion_loss']:.4g}"
    between = f"{low:+.4f} {high:+.4f}"
    return (*first, *losses, f"{row['difference']:+.4f}", between, row["better"] or "not known")


def _score_words(stats: dict[str, Any]) -> str:
    """Return a text about a head's scores and size."""
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
