"""Stream labelled samples into a running server, in order, and keep the score.

The score is prequential: each response says what the model predicted for a sample just before it
learned it.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from wolfstream.service.cli.display import Frame
from wolfstream.service.cli.replay_connections import Connection
from wolfstream.service.client.errors import ClientError, Refused, Unreachable
from wolfstream.service.errors.visible_text import visible
from wolfstream.service.files.labelled import Label

_MOST_SAMPLES_IN_FLIGHT = 8192


@dataclass
class Score:
    """The progress of a head, and how well it has predicted so far.

    samples: acknowledged by the server.
    sent: samples that were sent, with or without a response.
    seconds: spent waiting for responses, or until the rate allowed the next batch.
    judged, correct: samples for which a class was predicted, and for which it was right.
    measured, off: samples for which a number was predicted, and the sum of absolute errors.
    answer: the server's last description of the head.
    """

    head: str
    samples: int = 0
    sent: int = 0
    seconds: float = 0.0
    judged: int = 0
    correct: int = 0
    measured: int = 0
    off: float = 0.0
    answer: dict[str, Any] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Samples learned per second."""
        return self.samples / self.seconds if self.seconds > 0 else 0.0

    @property
    def accuracy(self) -> float | None:
        """Share of right predictions; None before the first one, and for a regression."""
        return self.correct / self.judged if self.judged else None

    @property
    def mae(self) -> float | None:
        """Mean absolute error; None before the first prediction of a number."""
        return self.off / self.measured if self.measured else None

    def count(self, labels: Sequence[Label], answer: dict[str, Any]) -> None:
        """Take the response to a batch into account."""
        self.samples += len(labels)
        self.answer = answer.get("head", {})
        for label, predicted in zip(labels, answer["results"]["prediction"], strict=True):
            if isinstance(predicted, float):  # No label is a float: the task is regression.
                self.measured += 1
                self.off += abs(predicted - float(label))
            elif predicted is not None:
                self.judged += 1
                self.correct += type(predicted) is type(label) and predicted == label


class _Flight(NamedTuple):
    score: Score
    first: int
    labels: list[Label]


class Replay:
    """The replay of a stream of batches to the heads of one model.

    Each batch goes to every head in turn; `scores` is up to date at any moment, also after an
    error. rate: the most samples per second.
    """

    def __init__(
        self, connection: Connection, heads: Iterable[str], rate: float | None = None
    ) -> None:
        self.scores = [Score(head) for head in heads]
        self._connection = connection
        self._rate = rate
        self._flights: dict[int, _Flight] = {}
        self._since = time.monotonic()

    def run(
        self, batches: Iterable[tuple[Any, list[Label]]], display: "Display | None" = None
    ) -> list[Score]:
        """Send all batches, wait for all responses, and return the scores.

        Raises ClientError with a note that names the samples.
        """
        try:
            for X, y in self._paced(batches):
                for score in self.scores:
                    self._send(score, X, y)
                    self._receive_until(self._room(len(y)))
                if display:
                    display.update(self.scores)
            self._receive_until(0)
        except Refused:
            # Batches after the refused one may have been learned: wait for their responses.
            with suppress(ClientError):
                while self._connection.unanswered:
                    with suppress(Refused):
                        self._receive_until(0)
            raise
        finally:
            if display:
                display.update(self.scores)
        return self.scores

    def _room(self, batch: int) -> int:
        """Return how many batches may stay without a response after the next one is sent."""
        return min(self._connection.window, max(1, _MOST_SAMPLES_IN_FLIGHT // batch)) - 1

    def _paced(
        self, batches: Iterable[tuple[Any, list[Label]]]
    ) -> Iterator[tuple[Any, list[Label]]]:
        sent = 0
        start = time.monotonic()
        for X, y in batches:
            if self._rate and sent / self._rate > time.monotonic() - start:
                self._receive_until(0)
                time.sleep(max(0.0, sent / self._rate - (time.monotonic() - start)))
                self._clock(idle=True)
            yield X, y
            sent += len(y)

    def _send(self, score: Score, X: Any, y: list[Label]) -> None:
        self._clock()
        flight = _Flight(score, score.sent, y)
        score.sent += len(y)
        try:
            ticket = self._connection.send(score.head, X, y)
        except (Unreachable, Refused) as error:
            score.sent -= len(y)
            error.add_note(_place(flight))
            raise
        self._flights[ticket] = flight

    def _receive_until(self, unanswered: int) -> None:
        while self._connection.unanswered > unanswered:
            try:
                ticket, answer = self._connection.receive()
            except Refused as refused:
                flight = self._flights.pop(refused.ticket or 0, None)
                if flight:
                    flight.score.sent -= len(flight.labels)
                    refused.add_note(_place(flight))
                raise
            self._clock()
            flight = self._flights.pop(ticket)
            try:
                flight.score.count(flight.labels, answer)
            except (KeyError, TypeError, ValueError):
                raise ClientError("the server's response lacks results.prediction") from None

    def _clock(self, idle: bool = False) -> None:
        """Charge the time since the last call to the heads that have samples under way."""
        now = time.monotonic()
        for score in self.scores:
            if idle or score.sent > score.samples:
                score.seconds += now - self._since
        self._since = now


def _place(flight: _Flight) -> str:
    last = flight.first + len(flight.labels)
    return f"in samples {flight.first + 1:,} to {last:,} of what was sent to {flight.score.head}"


class Display(Frame):
    """The progress and score of a replay: a bar for each head, or a line every few seconds."""

    def __init__(self, console: Console, title: str, heads: Iterable[str], total: int) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:>7,.0f}/{task.total:,.0f}", style="progress.download"),
            TextColumn("{task.fields[score]}"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        )
        super().__init__(console, *columns, transient=False)
        self._title, self._total = escape(visible(title)), total
        self._tasks = [
            self.bars.add_task(f"{self._title} [bold]{head}", total=total, score="")
            for head in heads
        ]

    def update(self, scores: Sequence[Score]) -> None:
        """Show the present scores."""
        for task, score in zip(self._tasks, scores, strict=True):
            self.bars.update(task, completed=score.samples, score=_summary(score))
        if self.line_is_due():
            for score in scores:
                done = f"{score.samples:,} of {self._total:,} samples"
                self.console.print(f"{self._title} {score.head}: {done}, {_summary(score)}")


def _summary(score: Score) -> str:
    text = f"{score.rate:>7,.0f} samples/s"
    if score.accuracy is not None:
        text += f", {score.accuracy:6.2%} right"
    if score.mae is not None:
        text += f", MAE {score.mae:.4g}"
    return text
