"""`make demo`: a server, two real streams through it into both heads, one table.

pendigits has ten classes, and other people wrote its held-back part; elec2 is in time order and
drifts, and its held-back part is its end.
"""

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
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from service.client import ClientError, HttpConnection
from service.replay import Display, Replay, Score

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
HEADS = ("working_set", "asset")
BATCH = 256
ASSET = {"dimension": 512, "lambda": 1e-4}
_START_SECONDS = 120
_STOP_SECONDS = 30


class Stream(NamedTuple):
    """A real stream, what is held back from it, and the model that learns it."""

    name: str
    about: str
    spec: dict[str, Any]
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_held: NDArray[np.float64]
    y_held: NDArray[np.int64]


class Result(NamedTuple):
    """One line of the table."""

    stream: Stream
    score: Score
    held_back: float


class ServerDied(Exception):
    """The server ended, or did not get ready."""


def pendigits() -> Stream:
    with np.load(DATA / "pendigits.npz") as data:
        parts = [data[name].astype(np.float64) for name in ("X", "X_test")]
        labels = [data[name].astype(np.int64) for name in ("y", "y_test")]
    spec = {"working_set": {"algorithm": "msfw", "C": 10.0}, "asset": ASSET}
    return Stream("pendigits", "10 classes", spec, parts[0], labels[0], parts[1], labels[1])


def elec2(held_back: int = 2000) -> Stream:
    with np.load(DATA / "elec2.npz") as data:
        X, y = data["X"].astype(np.float64), data["y"].astype(np.int64)
    working_set = {"algorithm": "msfw", "C": 1.0, "max_size": 2000}
    spec = {"working_set": working_set, "asset": ASSET}
    head, tail = slice(None, -held_back), slice(-held_back, None)
    return Stream("elec2", "with drift", spec, X[head], y[head], X[tail], y[tail])


@contextmanager
def running_server(directory: Path, console: Console) -> Iterator[str]:
    """A server in a process of its own, ready; stopped with SIGTERM, which must end it with 0."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "service", "serve"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--data", str(directory / "data")]
    log = directory / "server.log"
    # The settings of another server that this shell may be for are not the demo's.
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
    with (
        httpx.Client(trust_env=False) as client,
        console.status("Starting the server; the first start compiles its kernels ..."),
    ):
        while True:
            if process.poll() is not None:
                raise ServerDied(f"it ended with exit code {process.returncode}")
            if time.monotonic() - start > _START_SECONDS:
                raise ServerDied(f"it is not ready after {_START_SECONDS} s")
            try:
                if client.get(f"{url}/readyz").is_success:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.1)
    console.print(f"Server ready on {url} in {time.monotonic() - start:.1f} s.", highlight=False)


def learn(stream: Stream, url: str, console: Console) -> list[Result]:
    """Stream a set into both heads of a new model, then ask for the held-back part."""
    batches = (
        (stream.X[i : i + BATCH], stream.y[i : i + BATCH].tolist())
        for i in range(0, len(stream.y), BATCH)
    )
    with HttpConnection(url, stream.name) as model:
        model.create(stream.spec)
        with Display(console, f"{stream.name:<9}", HEADS, len(stream.y)) as display:
            scores = Replay(model, HEADS).run(batches, display)
        start = time.monotonic()
        results = [Result(stream, score, held_back(stream, model, score.head)) for score in scores]
        console.print(
            f"{stream.name:<9} {len(stream.y_held):,} held-back samples predicted by both heads "
            f"in {time.monotonic() - start:.1f} s",
            highlight=False,
        )
        return results


def held_back(stream: Stream, model: HttpConnection, head: str) -> float:
    """Share of right predictions for the held-back part."""
    said: list[Any] = []
    for i in range(0, len(stream.y_held), BATCH):
        said += model.predict(stream.X_held[i : i + BATCH], head)["prediction"]
    return float(np.mean(np.array(said) == stream.y_held))


def table(results: list[Result]) -> Table:
    """All that was measured; 80 columns are enough for it."""
    grid = Table(
        title="One pass over each stream, in order, every sample durable before its answer",
        caption=f"Over HTTP, {BATCH} samples a request, the heads taking turns.\n"
        "Prequential: right predictions, each made just before its sample was learned.\n"
        "Held back: the same for samples that were never learned, after the pass.\n"
        "Set size: samples in the working set; ASSET keeps none, only random features.",
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        caption_style="dim",
        box=box.SIMPLE_HEAD,
    )
    for column in ("stream", "head"):
        grid.add_column(column, no_wrap=True)
    for column in ("samples/s", "prequential", "held back", "set size"):
        grid.add_column(column, justify="right", no_wrap=True)
    for stream, score, accuracy in results:
        first = score.head == HEADS[0]
        size = score.answer.get("size")
        grid.add_row(
            f"[bold]{stream.name}[/]" if first else stream.about,
            score.head,
            f"{score.rate:,.0f}",
            "-" if score.accuracy is None else f"{score.accuracy:.2%}",
            f"{accuracy:.2%}",
            f"{score.answer['dimension'] if size is None else size:,}",
            end_section=not first,
        )
    return grid


def main() -> None:
    # SIGTERM would end this process without its server and its temporary directory.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        demonstrate()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def demonstrate() -> None:
    console = Console()
    if not console.is_terminal:
        # A pipe has no width, whatever COLUMNS says.
        console = Console(width=100)
    with tempfile.TemporaryDirectory(prefix="wolfstream-demo-") as directory:
        with running_server(Path(directory), console) as url:
            results = [row for load in (pendigits, elec2) for row in learn(load(), url, console)]
        console.print()
        console.print(table(results))
    console.print("The server was stopped with SIGTERM and ended with 0.", highlight=False)


if __name__ == "__main__":
    main()
