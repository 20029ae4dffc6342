"""How far a command has come: a bar on a terminal, a line now and then elsewhere."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

_LINE_SECONDS = 2.0


class Bar:
    """One bar, with words that change; gone at the end, when the result says it all."""

    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title = console, title
        self._said = time.monotonic()
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[words]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_interactive,
        )
        self._task = self._bars.add_task(title, total=1.0, words="")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def show(self, share: float, words: str) -> None:
        """How much is done, from 0 to 1, and what to say beside it."""
        if not self._bars.disable:
            self._bars.update(self._task, completed=min(max(share, 0.0), 1.0), words=words)
        elif time.monotonic() - self._said > _LINE_SECONDS:
            self._said = time.monotonic()
            self._console.print(
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
