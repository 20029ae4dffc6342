"""`make demo`: start a server, stream real data through it, print tables of its predictions.

pendigits has ten classes, and other people wrote its held-back part; elec2 is in the order of time
and drifts, and its held-back part is its end. A default model learns both, and so do models with
one head. bike_hour, from the folder `--data`, is a regression in the order of time. Beside the
models stand two rules that learn nothing, so that a reader can judge what learning was worth.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.demo_streams import (
    HEADS,
    Stream,
    bike_hour,
    elec2,
    last_again,
    majority_so_far,
    mean_so_far,
    pendigits,
)
from wolfstream.service.cli.replay_connections import HttpConnection
from wolfstream.service.cli.replayer import Display, Replay, Score
from wolfstream.service.client.batches import Batch
from wolfstream.service.client.errors import ClientError

BATCH = 256
_START_SECONDS = 300
_STOP_SECONDS = 30


class Result(NamedTuple):
    """One line of a table.

    prequential: the head's scores as the model's description has them. held_back: share of right
    predictions, or mean absolute error. size: samples in the working set, or features of ASSET in a
    model without one.
    """

    stream: Stream
    score: Score
    prequential: dict[str, Any]
    held_back: float
    size: int


class ServerDied(Exception):
    """The server ended, or did not become ready."""


@contextmanager
def running_server(directory: Path, console: Console) -> Iterator[str]:
    """A server in a process of its own, ready; stopped with SIGTERM, which must end it with 0."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "wolfstream", "serve"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--data", str(directory / "data")]
    log = directory / "server.log"
    # Variables that configure another server must not configure this one.
    env = {name: value for name, value in os.environ.items() if not name.startswith("WOLFSTREAM_")}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=env)
    try:
        _wait_until_ready(process, url, console)
        yield url
        process.send_signal(signal.SIGTERM)
        if process.wait(_STOP_SECONDS) != 0:
            raise ServerDied(f"it ended with exit code {process.returncode} after SIGTERM")
    except (ServerDied, ClientError, subprocess.TimeoutExpired) as error:
        console.print(f"[red]The server failed:[/] {error}", soft_wrap=True, highlight=False)
        console.print("The last lines of its log:")
        for line in log.read_text(errors="replace").splitlines()[-20:]:
            console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
        raise SystemExit(1) from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_ready(process: "subprocess.Popen[bytes]", url: str, console: Console) -> None:
    start = time.monotonic()
    waiting = "Starting the server; the first start compiles its kernels"
    with httpx.Client(trust_env=False) as client, console.status(f"{waiting} ...") as status:
        while True:
            if process.poll() is not None:
                raise ServerDied(f"it ended with exit code {process.returncode}")
            if time.monotonic() - start > _START_SECONDS:
                raise ServerDied(f"it is not ready after {_START_SECONDS} s")
            try:
                response = client.get(f"{url}/readyz")
                if response.is_success:
                    break
                status.update(f"{waiting}: {response.json()['detail']} ...")
            except httpx.TransportError:
                pass
            time.sleep(0.1)
    console.print(f"Server ready on {url} in {time.monotonic() - start:.1f} s.", highlight=False)


def learn(stream: Stream, url: str, console: Console) -> list[Result]:
    """Stream a set into new models, then ask each for the held-back part."""
    return [_learn_with(head, stream, url, console) for head in stream.heads]


def _learn_with(head: str, stream: Stream, url: str, console: Console) -> Result:
    batches = (
        Batch(stream.X[i : i + BATCH], stream.y[i : i + BATCH].tolist())
        for i in range(0, len(stream.y), BATCH)
    )
    with HttpConnection(url, f"{stream.name}-{head}") as model:
        model.create(stream.spec_for(head))
        with Display(console, f"{stream.name:<9}", [head], len(stream.y)) as display:
            (score,) = Replay(model, [head]).run(batches, display)
        start = time.monotonic()
        heads = model.describe()["heads"]
        kept = heads["working_set"]["size"] if "working_set" in heads else None
        size = heads["asset"]["dimension"] if kept is None else kept
        held = held_back(stream, model, head)
        result = Result(stream, score, heads[head]["prequential"], held, size)
        console.print(
            f"{stream.name:<9} {len(stream.y_held):,} held-back samples predicted by {head} in "
            f"{time.monotonic() - start:.1f} s",
            highlight=False,
        )
        return result


def held_back(stream: Stream, model: HttpConnection, head: str) -> float:
    """Share of right predictions for the held-back part; for a regression the mean error."""
    predicted: list[Any] = []
    for i in range(0, len(stream.y_held), BATCH):
        predicted += model.predict(stream.X_held[i : i + BATCH], head)["prediction"]
    if stream.spec.get("task") == "regression":
        return float(np.mean(np.abs(np.array(predicted) - stream.y_held)))
    return float(np.mean(np.array(predicted) == stream.y_held))


def table(results: list[Result]) -> Table:
    """Shares of right predictions, beside those of two rules that learn nothing; 80 columns."""
    grid = _grid(
        "One pass over each stream, in order",
        f"Over HTTP, {BATCH} samples a request, each durable before its response. adaptive is\n"
        "the default model, which has a working set, too; the others have one head alone.\n"
        "Right: predictions, each before its sample is learned. Saved: the share of the\n"
        "errors of the label before that are not made (kappa temporal). Loss: the mean\n"
        "log loss. Held back: right predictions of samples never learned, after the\n"
        "pass. Size: samples in the working set; features of ASSET, which keeps no\n"
        "samples. A model is worth its cost where it beats the two rules in italics,\n"
        "which learn nothing.",
        ("stream", "predicted by"),
        ("samples/s", "right", "saved", "loss", "held back", "size"),
    )
    for stream, score, scores, accuracy, size in results:
        first, last = score.head == HEADS[0], score.head == HEADS[-1]
        grid.add_row(
            f"[bold]{stream.name}[/]" if first else stream.about if last else "",
            score.head,
            f"{score.rate:,.0f}",
            "-" if score.accuracy is None else f"{score.accuracy:.2%}",
            "-" if scores["kappa_temporal"] is None else f"{scores['kappa_temporal']:.2f}",
            "-" if scores["log_loss"] is None else f"{scores['log_loss']:.3f}",
            f"{accuracy:.2%}",
            f"{size:,}",
        )
        if last:
            y, most_frequent = stream.y, np.bincount(stream.y).argmax()
            majority = f"{np.mean(majority_so_far(y) == y[1:]):.2%}"
            held = f"{np.mean(stream.y_held == most_frequent):.2%}"
            again = f"{np.mean(last_again(y) == y[1:]):.2%}"
            grid.add_row("", "[italic]majority class[/]", "", majority, "", "", held, "")
            grid.add_row("", "[italic]last label[/]", "", again, "", "", "", "", end_section=True)
    return grid


def regression_table(results: list[Result]) -> Table:
    """Mean absolute errors of regressions, beside those of two rules that learn nothing."""
    grid = _grid(
        "Regression: mean absolute errors",
        "Running mean: of all numbers so far; for the part held back, of the whole pass.",
        ("stream", "predicted by"),
        ("samples/s", "prequential", "R2", "held back"),
    )
    for stream, score, scores, held, _ in results:
        mae = "-" if score.mae is None else f"{score.mae:.1f}"
        r2 = "-" if scores["r2"] is None else f"{scores['r2']:.3f}"
        first, last = score.head == stream.heads[0], score.head == stream.heads[-1]
        about = f"[bold]{stream.name}[/]" if first else stream.about
        grid.add_row(about, score.head, f"{score.rate:,.0f}", mae, r2, f"{held:.1f}")
        if not last:
            continue
        y = stream.y
        mean = f"{np.abs(mean_so_far(y) - y[1:]).mean():.1f}"
        held_back_error = f"{np.abs(stream.y_held - y.mean()).mean():.1f}"
        again = f"{np.abs(last_again(y) - y[1:]).mean():.1f}"
        grid.add_row("", "[italic]running mean[/]", "", mean, "", held_back_error)
        grid.add_row("", "[italic]last number[/]", "", again, "", "", end_section=True)
    return grid


def _grid(title: str, caption: str, words: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    """Return a table without rows; the columns of numbers are set to the right."""
    grid = Table(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        caption_style="dim",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column in words:
        grid.add_column(column, no_wrap=True)
    for column in numbers:
        grid.add_column(column, justify="right", no_wrap=True)
    return grid


def kept(results: list[Result]) -> list[dict[str, Any]]:
    """Return the figures of the table as plain data, those of the rules last for each stream."""
    rows = list[dict[str, Any]]()
    for stream, score, scores, accuracy, size in results:
        figures = {"right": score.accuracy, "log_loss": scores["log_loss"], "held_back": accuracy}
        rows.append({"stream": stream.name, "by": score.head, **figures, "size": size})
        if score.head == HEADS[-1]:
            y, most_frequent = stream.y, np.bincount(stream.y).argmax()
            for rule, predictions in (
                ("majority", majority_so_far(y)),
                ("last label", last_again(y)),
            ):
                rows.append(
                    {"stream": stream.name, "by": rule, "right": np.mean(predictions == y[1:])}
                )
            rows[-2]["held_back"] = np.mean(stream.y_held == most_frequent)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--results", type=Path, help="keep the figures of the first table here")
    arguments = parser.parse_args()
    # SIGTERM would end this process without its server and its temporary directory.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        demonstrate(arguments.data, arguments.results)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def demonstrate(folder: Path, file: Path | None) -> None:
    console = Console()
    if not console.is_terminal:
        # A pipe has no width, whatever COLUMNS says.
        console = Console(width=100)
    with tempfile.TemporaryDirectory(prefix="wolfstream-demo-") as directory:
        with running_server(Path(directory), console) as url:
            results = [row for load in (pendigits, elec2) for row in learn(load(), url, console)]
            try:
                regressions = learn(bike_hour(folder), url, console)
            except OSError as error:
                regressions = []
                console.print(
                    f"bike_hour, a regression, is left out: {error.filename}: {error.strerror}. "
                    "DATA=FOLDER names the folder that holds it.",
                    highlight=False,
                    soft_wrap=True,
                )
        console.print()
        console.print(table(results))
        if file is not None:
            file.write_text("".join(f"{json.dumps(row)}\n" for row in kept(results)))
        if regressions:
            console.print(regression_table(regressions))
    console.print("The server was stopped with SIGTERM and ended with 0.", highlight=False)


if __name__ == "__main__":
    main()
