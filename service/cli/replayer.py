"""Streams labelled samples into a running server, in order, and scores its predictions.

The score is prequential: each response has the predictions that the model made just before it
learned the samples.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from wolfstream.service.cli.display import ProgressDisplay
from wolfstream.service.cli.replay_connections import Connection
from wolfstream.service.client.batches import Batch
from wolfstream.service.client.errors import ClientError, Refused, Unreachable
from wolfstream.service.errors import visible
from wolfstream.service.files.labelled import Label
from wolfstream.service.offline.evaluation import Evaluation
from wolfstream.solver.labels import key_of

MOST_WARNINGS = 16
_MAX_SAMPLES_IN_FLIGHT = 8192


@dataclass
class Score:
    """The progress of a head, and how well it has predicted so far.

    Attributes:
        head: its name.
        samples: acknowledged by the server.
        sent: samples that were sent, with or without a response.
        seconds: spent waiting for responses, or until the rate allowed the next batch.
        judged: samples for which a class was predicted.
        correct: samples for which it was right.
        classes: labels and predictions of the judged samples.
        measured: samples for which a number was predicted.
        absolute_error: sum over the measured samples.
        description: of the head in the last response.
        warnings: sentences of the responses, the first MOST_WARNINGS different ones.
        ranks: the head's scores after the replay; empty if it has none.
    """

    head: str
    samples: int = 0
    sent: int = 0
    seconds: float = 0.0
    judged: int = 0
    correct: int = 0
    classes: Evaluation = field(default_factory=lambda: Evaluation([]))
    measured: int = 0
    absolute_error: float = 0.0
    description: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    ranks: dict[str, Any] = field(default_factory=dict)

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
        return self.absolute_error / self.measured if self.measured else None

    def count(self, labels: Sequence[Label], response: dict[str, Any]) -> None:
        """Count the response to a batch."""
        self.samples += len(labels)
        self.description = response.get("head", {})
        for warning in response.get("warnings", ()):
            if len(self.warnings) < MOST_WARNINGS and warning["message"] not in self.warnings:
                self.warnings.append(warning["message"])
        for label, predicted in zip(labels, response["results"]["prediction"], strict=True):
            if isinstance(predicted, float):  # labels of classes are never floats
                self.measured += 1
                self.absolute_error += abs(predicted - float(label))
            elif predicted is not None:
                self.judged += 1
                self.correct += key_of(predicted) == key_of(label)
                self.classes.count([label], [predicted])


class _InFlight(NamedTuple):
    """A batch without a response."""

    score: Score  # of the head that it was sent to
    first: int  # number of its first sample, from 0
    labels: list[Label]


class Replay:
    """The replay of a stream of batches to the heads of one model.

    Attributes:
        scores: of each head, up to date at any moment, also after an error.
    """

    def __init__(
        self, connection: Connection, heads: Iterable[str], rate: float | None = None
    ) -> None:
        """Begin with nothing sent.

        Args:
            connection: to the model.
            heads: each of which gets every batch in turn.
            rate: bound on the samples per second; None for no bound.
        """
        self.scores = [Score(head) for head in heads]
        self._connection = connection
        self._rate = rate
        self._in_flight: dict[int, _InFlight] = {}  # by the number of the request
        self._since = time.monotonic()  # up to when time was charged to the scores

    def run(self, batches: Iterable[Batch], display: "Display | None" = None) -> list[Score]:
        """Send all batches, wait for all responses, and return the scores.

        Raises ClientError, with a note that says which samples it concerns.
        """
        try:
            for batch in self._paced(batches):
                for score in self.scores:
                    self._send(score, batch)
                    self._receive_until(self._room(len(batch.y)))
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
        """Return how many batches may be without a response when the next one is sent."""
        return min(self._connection.window, max(1, _MAX_SAMPLES_IN_FLIGHT // batch)) - 1

    def _paced(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the batches at the rate."""
        sent = 0
        start = time.monotonic()
        for batch in batches:
            if self._rate and sent / self._rate > time.monotonic() - start:
                self._receive_until(0)
                time.sleep(max(0.0, sent / self._rate - (time.monotonic() - start)))
                self._charge_time(idle=True)
            yield batch
            sent += len(batch.y)

    def _send(self, score: Score, batch: Batch) -> None:
        self._charge_time()
        batch_in_flight = _InFlight(score, score.sent, batch.y)
        score.sent += len(batch.y)
        try:
            ticket = self._connection.send_batch(batch, score.head)
        except (Unreachable, Refused) as error:
            score.sent -= len(batch.y)
            error.add_note(_location(batch_in_flight))
            raise
        self._in_flight[ticket] = batch_in_flight

    def _receive_until(self, unanswered: int) -> None:
        while self._connection.unanswered > unanswered:
            try:
                ticket, response = self._connection.next_response()
            except Refused as refused:
                batch_in_flight = self._in_flight.pop(refused.ticket or 0, None)
                if batch_in_flight:
                    batch_in_flight.score.sent -= len(batch_in_flight.labels)
                    refused.add_note(_location(batch_in_flight))
                raise
            self._charge_time()
            batch_in_flight = self._in_flight.pop(ticket)
            try:
                batch_in_flight.score.count(batch_in_flight.labels, response)
            except (KeyError, TypeError, ValueError):
                raise ClientError("the server's response lacks results.prediction") from None

    def _charge_time(self, idle: bool = False) -> None:
        """Charge the time since the last call to heads with samples in flight; if idle, to all."""
        now = time.monotonic()
        for score in self.scores:
            if idle or score.sent > score.samples:
                score.seconds += now - self._since
        self._since = now


def _location(batch_in_flight: _InFlight) -> str:
    """Return a text that says where a batch is in the file."""
    last = batch_in_flight.first + len(batch_in_flight.labels)
    head = batch_in_flight.score.head
    return f"in samples {batch_in_flight.first + 1:,} to {last:,} of what was sent to {head}"


class Display(ProgressDisplay):
    """The progress and score of a replay: a bar for each head, or a line every few seconds."""

    def __init__(self, console: Console, title: str, heads: Iterable[str], total: int) -> None:
        """Begin at 0.

        Args:
            console: to print on.
            title: of the bars.
            heads: in the order of `Replay.scores`.
            total: number of samples.
        """
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
        """Show the current scores."""
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
