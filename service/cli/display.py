"""The progress of a command: a bar on a terminal, a line every few seconds elsewhere."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

from wolfstream.service.errors.visible_text import visible

_LINE_SECONDS = 2.0


class Frame:
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.bars.stop()

    def line_is_due(self) -> bool:
        """Return whether a line is due: there are no bars, and the last line is old enough."""
        if not self.bars.disable or time.monotonic() - self._last_line <= _LINE_SECONDS:
            return False
        self._last_line = time.monotonic()
        return True


class Bar(Frame):
    """One bar with a text that changes, which disappears at the end."""

    def __init__(self, console: Console, title: str, words: str = "") -> None:
        """Begin at 0.

        Args:
            console: to print on.
            title: of the bar.
            words: the text until `show` is called.
        """
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[words]}", markup=False),
            TimeElapsedColumn(),
        )
        super().__init__(console, *columns, transient=True)
        self._title = visible(title)
        self._task = self.bars.add_task(self._title, total=1.0, words=words)

    def show(self, share: float, words: str) -> None:
        """Show the share that is done, from 0 to 1, and a text."""
        self.bars.update(self._task, completed=min(max(share, 0.0), 1.0), words=words)
        if self.line_is_due():
            self.console.print(
                f"{self._title}: {words}", highlight=False, markup=False, soft_wrap=True
            )


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
