"""How far a command has come: a bar on a terminal, a line now and then elsewhere."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

_LINE_SECONDS = 2.0


class Frame:
    """Bars on a terminal; elsewhere nothing is drawn, and a line is due now and then."""

    def __init__(self, console: Console, *columns: ProgressColumn, transient: bool) -> None:
        self.console = console
        self.bars = Progress(
            *columns, console=console, transient=transient, disable=not console.is_interactive
        )
        self._said = time.monotonic()

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
        """Whether it is time for a line where no bars are drawn."""
        if not self.bars.disable or time.monotonic() - self._said <= _LINE_SECONDS:
            return False
        self._said = time.monotonic()
        return True


class Bar(Frame):
    """One bar, with words that change; gone at the end, when the result says it all."""

    def __init__(self, console: Console, title: str) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[words]}", markup=False),
            TimeElapsedColumn(),
        )
        super().__init__(console, *columns, transient=True)
        self._title = title
        self._task = self.bars.add_task(title, total=1.0, words="")

    def show(self, share: float, words: str) -> None:
        """How much is done, from 0 to 1, and what to say beside it."""
        self.bars.update(self._task, completed=min(max(share, 0.0), 1.0), words=words)
        if self.line_is_due():
            self.console.print(
                f"{self._title}: {words}", highlight=False, markup=False, soft_wrap=True
            )


class Interruption:
    """Whether Ctrl-C was pressed."""

    asked = False


@contextmanager
def first_interrupt_asks() -> Iterator[Interruption]:
    """The first Ctrl-C sets `asked`; the second one interrupts, as it always does."""
    interruption = Interruption()

    def ask(_: int, __: FrameType | None) -> None:
        interruption.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)
