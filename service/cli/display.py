"""What commands show: progress, as a bar on a terminal or a line every few seconds, and tables."""

import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Self

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from wolfstream.service.errors import visible

_LINE_SECONDS = 2.0


def warn_of(path: Path, messages: Iterable[str]) -> None:
    """Print warnings about a data file on standard error, one a line."""
    for message in messages:
        click.echo(f"Warning: {visible(f'{path}: {message}')}", err=True)


class ProgressDisplay:
    """Bars on a terminal; elsewhere lines, which the subclass prints when `line_is_due`."""

    def __init__(self, console: Console, *columns: ProgressColumn, transient: bool) -> None:
        """Begin without bars.

        Args:
            console: to print on.
            columns: of each bar.
            transient: whether bars disappear at the end.
        """
        self.console = console
        self.bars = Progress(
            *columns, console=console, transient=transient, disable=not console.is_interactive
        )
        self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def line_is_due(self) -> bool:
        """Return whether a line is due: there are no bars, and the last line is old enough."""
        if not self.bars.disable or time.monotonic() - self._last_line <= _LINE_SECONDS:
            return False
        self._last_line = time.monotonic()
        return True


class Bar(ProgressDisplay):
    """One bar with a text that changes, which disappears at the end."""

    def __init__(self, title: str, text: str = "", console: Console | None = None) -> None:
        """Begin at 0.

        Args:
            title: of the bar.
            text: beside the bar until `show` is called.
            console: to print on; None for standard error.
        """
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[text]}", markup=False),
            TimeElapsedColumn(),
        )
        super().__init__(console or Console(stderr=True), *columns, transient=True)
        self._title = visible(title)
        self._task = self.bars.add_task(self._title, total=1.0, text=text)

    def show(self, share: float, text: str) -> None:
        """Show the share that is done, from 0 to 1, and a text."""
        self.bars.update(self._task, completed=min(max(share, 0.0), 1.0), text=text)
        if self.line_is_due():
            self.console.print(
                f"{self._title}: {text}", highlight=False, markup=False, soft_wrap=True
            )


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables on standard output, 200 columns wide where that is no terminal."""
    # A pipe has no width, so rich would wrap the tables at 80 columns.
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for table in tables:
        console.print(table)


class Interruption:
    """A request to end, by Ctrl-C.

    Attributes:
        requested: whether Ctrl-C was pressed.
    """

    requested = False


@contextmanager
def gentle_interrupt() -> Iterator[Interruption]:
    """Make the first Ctrl-C within the block a request to end; the second interrupts as usual."""
    interruption = Interruption()

    def request(_: int, __: FrameType | None) -> None:
        interruption.requested = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, request)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)
