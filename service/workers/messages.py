"""The contents of frames as plain data: states, refusals, revisions, labels and counts."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from wolfstream.service.diagnostics.metrics import Histogram
from wolfstream.service.errors import QuotaExceeded, Refusal
from wolfstream.service.model.revision import Revision
from wolfstream.service.samples.ids import LateLabels


def _kinds(kind: type[Refusal]) -> Iterator[tuple[str, type[Refusal]]]:
    yield kind.__name__, kind
    for other in kind.__subclasses__():
        yield from _kinds(other)


_REFUSALS = dict(_kinds(Refusal))


class State(NamedTuple):
    """The state of the leader.

    text: see `engine.phase.Phase`. readable: whether predictions are answered. accepting: whether
    samples are accepted. ready: whether they are learned at once. compiled: whether nothing is left
    to compile.
    """

    text: str = "starting"
    readable: bool = False
    accepting: bool = False
    ready: bool = False
    compiled: bool = False


class Use(NamedTuple):
    """The resources that requests to some of a server's processes use now.

    connections, streams: how many are open. held_bytes: the memory that requests hold.
    """

    connections: int = 0
    streams: int = 0
    held_bytes: int = 0

    def plus(self, other: "Use") -> "Use":
        """Return the sum of both."""
        return Use(*(one + two for one, two in zip(self, other, strict=True)))

    def minus(self, other: "Use") -> "Use":
        """Return the difference."""
        return Use(*(one - two for one, two in zip(self, other, strict=True)))


def refused(error: Refusal) -> list[Any]:
    """Return a refusal as plain data."""
    retry = error.retry_after_seconds if isinstance(error, QuotaExceeded) else None
    return [type(error).__name__, error.detail, error.errors, retry]


def refusal(plain: list[Any]) -> Refusal:
    """Return the refusal in plain data; the inverse of `refused`."""
    name, detail, errors, retry = plain
    kind = _REFUSALS[name]
    if retry is not None:
        return QuotaExceeded(detail, errors, retry)
    return kind(detail, errors)


def revisions(plain: list[list[Any]]) -> tuple[Revision, ...]:
    """Return revisions that were packed as lists."""
    return tuple(Revision(*pair) for pair in plain)


def labels_to_plain(labels: LateLabels) -> list[Any]:
    """Return labels for ids as plain data."""
    y = labels.y
    return [labels.ids, y if isinstance(y, list) else y.tobytes()]


def labels_from_plain(plain: list[Any]) -> LateLabels:
    """Return the labels in plain data; the inverse of `labels_to_plain`."""
    import numpy as np

    ids, y = plain
    return LateLabels(ids, np.frombuffer(y, "<f8").copy() if isinstance(y, bytes) else y)


def counted_since(histogram: Histogram, before: list[Any] | None) -> list[Any]:
    """Return what a histogram has counted since it was at [counts, total]."""
    counts, total = list(histogram.counts), histogram.total
    if before is None:
        return [counts, total]
    more = [now - then for now, then in zip(counts, before[0], strict=True)]
    return [more, total - before[1]]


def count_more(histogram: Histogram, plain: list[Any]) -> None:
    """Add the result of `counted_since` for another histogram."""
    counts, total = plain
    for k, number in enumerate(counts):
        histogram.counts[k] += number
    histogram.total += total


Report = Mapping[str, Any]
