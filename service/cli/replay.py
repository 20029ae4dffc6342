"""The command `wolfstream replay`, which streams a file of samples into a running server."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from wolfstream.service.cli.failures import Failure, Interrupted, NoConnection
from wolfstream.service.cli.options import (
    Count,
    DataSource,
    UserPath,
    check_server_url,
    column_options,
    read_json,
    server_option,
)
from wolfstream.service.spec.heads import BOTH, HEADS

# httpx, numpy and rich are imported when the command runs: help is quick.
if TYPE_CHECKING:
    from wolfstream.service.cli.replay_connections import HttpConnection
    from wolfstream.service.cli.replayer import Replay, Score
    from wolfstream.service.client.batches import Batch as ClientBatch
    from wolfstream.service.files.labelled import Batch as FileBatch
    from wolfstream.service.files.labelled import LabelledFile


@click.command()
@click.argument("file", type=UserPath(exists=True, dir_okay=False))
@server_option
@click.option(
    "--model",
    required=True,
    metavar="NAME",
    help="Name of the model; it is created if it does not exist.",
)
@click.option(
    "--head",
    type=click.Choice([*HEADS, "both"]),
    help="Head of the model that takes the samples; one that is fitted on request keeps the last "
    f"ones for a refit. both: {' and '.join(BOTH)}.  [default: the one that serves]",
)
@click.option(
    "--spec",
    metavar="JSON|@FILE",
    callback=read_json,
    help="Spec to create the model with. A model that exists must have this spec.  "
    "[default: {}, if the model does not exist]",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 100_000),
    metavar="N",
    default=256,
    show_default=True,
    help="Samples in a request.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Samples a second, at most.  [default: as fast as the server learns]",
)
@click.option(
    "--transport",
    type=click.Choice(["http", "websocket"]),
    default="http",
    show_default=True,
    help="http sends one request after another, websocket many at a time.",
)
@click.option("--skip", type=Count(0), default=0, metavar="N", help="Skip the first N samples.")
@click.option("--limit", type=Count(1), metavar="N", help="Stop after N samples.")
@column_options()
@click.option(
    "--features",
    type=click.IntRange(1),
    metavar="N",
    help="Width of svmlight rows.  [default: the largest index in the file]",
)
def replay(source: DataSource, features: int | None, **options: Any) -> None:
    """Stream a file of labelled samples into a model.

    FILE is CSV (with or without a header), NDJSON, svmlight, or npz with arrays X and y (or the CSR
    arrays data, indices, indptr, shape, and y). Labels are classes, or numbers for a model whose
    task is regression. The whole file is checked before the first sample is sent. Samples are
    learned in the order of the file, each once: if the connection breaks or the server has no
    room, requests without a response are sent again for up to a minute, under the same idempotency
    keys. The variable WOLFSTREAM_KEY holds the API key, where the server needs one.

    \b
    Examples:
      wolfstream replay stream.csv --model prices
      wolfstream replay train.svm --model ads --head both --transport websocket
      wolfstream replay digits.npz --model digits --rate 500 \\
          --spec '{"working_set": {"C": 10}}'
      wolfstream replay rents.csv --model rents --spec '{"task": "regression"}'

    \b
    Exit codes:
      0    every sample was acknowledged
      1    the file is malformed, or the server refused a request
      2    the command was used wrongly
      3    the server cannot be reached, or the connection was lost
      130  interrupted
    """  # noqa: D301  (click wants the control character)
    from wolfstream.solver.compile_cache import use_compile_cache

    use_compile_cache()
    from wolfstream.service.cli.display import warn_of
    from wolfstream.service.files.labelled import DataFileError, open_data

    check_server_url(options["url"])
    try:
        data = open_data(source.path, source.roles, features, texts=True, charset=source.charset)
        warn_of(source.path, (part.message for part in data.left_out))
        scores = _stream(data, **options)
    except DataFileError as error:
        raise Failure(f"{source.path}: {error}") from None
    for score in scores:
        warn_of(source.path, score.warnings)
        click.echo(_summary(score))
        if score.judged:
            _show_classes(score)


def _stream(
    data: "LabelledFile",
    *,
    url: str,
    model: str,
    head: str | None,
    spec: Any,
    transport: str,
    rate: float | None,
    batch: int,
    skip: int,
    limit: int | None,
) -> "list[Score]":
    """Connect and send the samples; return the scores. Raises Failure for any early end."""
    from rich.console import Console

    from wolfstream.service.cli.replay_connections import HttpConnection, WebsocketConnection
    from wolfstream.service.cli.replayer import Display, Replay
    from wolfstream.service.client.errors import AnswerLost, ClientError, Unreachable

    total = min(max(0, data.samples - skip), data.samples if limit is None else limit)
    # At most one second's samples, so that a slow stream does not come in bursts.
    size = batch if rate is None else max(1, min(batch, int(rate)))
    run: Replay | None = None
    try:
        with ExitStack() as stack:
            # Not an option, because other users can see options in the list of processes.
            key = os.environ.get("WOLFSTREAM_KEY")
            http = stack.enter_context(HttpConnection(url, model, key))
            model_spec = _ensure_model(http, model, spec)
            data = data.for_task(model_spec["task"])
            if not data.plain and model_spec.get("prepare", {}) is None:
                raise Failure(f"model {model} takes numbers only, and the file has texts or gaps")
            heads = _heads(head, model_spec)
            stream = WebsocketConnection(url, model, key) if transport == "websocket" else None
            run = Replay(stack.enter_context(stream) if stream else http, heads, rate)
            display = stack.enter_context(Display(Console(stderr=True), model, heads, total))
            scores = run.run(_client_batches(data, data.batches(size, skip, limit)), display)
            descriptions = http.describe()["heads"]
            for score in scores:
                score.ranks = descriptions[score.head].get("scores", {}).get("overall", {})
            return scores
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted{_progress_note(run, skip)}") from None
    except ClientError as error:
        reason = "; ".join([str(error), *getattr(error, "__notes__", [])])
        kind = NoConnection if isinstance(error, AnswerLost | Unreachable) else Failure
        raise kind(reason + _progress_note(run, skip)) from None


def _client_batches(
    data: "LabelledFile", batches: Iterator["FileBatch"]
) -> Iterator["ClientBatch"]:
    """Yield the batches of a file as the client sends them, with the header's names."""
    from wolfstream.service.client.batches import Batch, Table

    for batch in batches:
        X = batch.X if data.names is None else Table(list(data.names), batch.X)
        yield Batch(X, batch.labels, batch.weights)


def _ensure_model(http: "HttpConnection", model: str, spec: Any) -> dict[str, Any]:
    """Return the spec of the model; create it if it does not exist. Raises ClientError."""
    from wolfstream.service.client.errors import ClientError, Refused

    exists = True
    try:
        description = http.describe()
    except Refused as refused:
        if refused.status != 404:
            raise
        exists = False
    if spec is not None or not exists:
        description = http.create({} if spec is None else spec)
    if not isinstance(description.get("spec"), dict):
        raise ClientError(f"{http.client.url} describes no model: is this wolfstream?")
    if not exists:
        click.echo(f"created model {model}", err=True)
    return dict(description["spec"])


def _heads(option: str | None, spec: dict[str, Any]) -> list[str]:
    if option == "both":
        return list(BOTH)
    return [option or str(spec["serve"])]


def _progress_note(run: "Replay | None", skip: int) -> str:
    """Return a text that says what was learned, and how to go on from there."""
    if run is None:
        return "; nothing was sent"
    parts = [f"; {score.head}: {score.samples:,} samples acknowledged" for score in run.scores]
    unanswered = sum(score.sent - score.samples for score in run.scores)
    if unanswered:
        parts.append(
            f"; {unanswered:,} more were sent and may have been learned: compare the model's "
            "sequence before you go on with --skip"
        )
    elif len({score.samples for score in run.scores}) == 1:
        parts.append(f"; go on with --skip {skip + run.scores[0].samples}")
    return "".join(parts)


def _show_classes(score: "Score") -> None:
    """Print the scores that show what accuracy hides when one class is much more frequent."""
    from wolfstream.service.cli.display import print_tables
    from wolfstream.service.cli.evaluation_display import balance, tables

    click.echo(balance(score.classes.scores()))
    names = ("roc_auc", "average_precision")
    if ranks := {name: score.ranks[name] for name in names if score.ranks.get(name) is not None}:
        click.echo(f"of all that the model has learned: {balance(ranks)}")
    print_tables(tables(score.classes))


def _summary(score: "Score") -> str:
    text = f"{score.head}: {score.samples:,} samples in {score.seconds:.1f} s"
    text += f" ({score.rate:,.0f} samples/s)"
    if score.accuracy is not None:
        text += f", {score.accuracy:.2%} of {score.judged:,} predictions right"
    if score.mae is not None:
        text += f", MAE {score.mae:.4g} of {score.measured:,} predictions"
    size = score.description.get("size")
    return text if size is None else f"{text}, {size:,} samples in the set"
