"""The contents of frames as plain data: states, refusals, revisions, labels and counts."""

from typing import Any, NamedTuple

from wolfstream.service import errors
from wolfstream.service.diagnostics.metrics import Histogram
from wolfstream.service.errors import QuotaExceeded, Refusal
from wolfstream.service.model.revision import Revision
from wolfstream.service.samples.ids import LateLabels
from wolfstream.service.samples.tasks import task_of, unpack

# Name -> refusal that clients can distinguish. Other packages have subclasses of these, such as the
# fleet's storage, which a worker does not import.
_REFUSALS = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Refusal)
}


class LeaderState(NamedTuple):
    """The state of the leader."""

    text: str = "starting"  # see `engine.phase.Phase`
    readable: bool = False  # whether predictions are answered
    accepting: bool = False  # whether samples are accepted
    ready: bool = False  # whether samples are learned at once
    compiled: bool = False  # whether all code is compiled


class ResourceUse(NamedTuple):
    """The resources that requests to one or several processes of a server use now."""

    connections: int = 0  # number of open connections
    streams: int = 0  # number of open streams
    held_bytes: int = 0  # memory that requests hold

    def plus(self, other: "ResourceUse") -> "ResourceUse":
        """Return the sum of both."""
        return ResourceUse(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def minus(self, other: "ResourceUse") -> "ResourceUse":
        """Return the difference."""
        return ResourceUse(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


def refusal_to_plain(error: Refusal) -> list[Any]:
    """Return a refusal as plain data; its class becomes the nearest base in `service.errors`."""
    retry = error.retry_after_seconds if isinstance(error, QuotaExceeded) else None
    kind = next(kind for kind in type(error).__mro__ if kind in _REFUSALS.values())
    return [kind.__name__, error.detail, error.errors, retry]


def refusal_from_plain(plain: list[Any]) -> Refusal:
    """Return the refusal in plain data."""
    name, detail, faults, retry = plain
    if retry is not None:
        return QuotaExceeded(detail, faults, retry)
    return _REFUSALS[name](detail, faults)


def revisions(plain: list[list[Any]]) -> tuple[Revision, ...]:
    """Return the revisions in plain data."""
    return tuple(Revision(*fields) for fields in plain)


def labels_to_plain(labels: LateLabels) -> list[Any]:
    """Return labels for ids as plain data."""
    return [labels.ids, task_of(labels.y).pack(labels.y)]


def labels_from_plain(plain: list[Any]) -> LateLabels:
    """Return the labels in plain data."""
    ids, y = plain
    return LateLabels(ids, unpack(y))


def counts_since(histogram: Histogram, before: list[Any] | None) -> list[Any]:
    """Return what was added to a histogram since an earlier moment, as [counts, total].

    Args:
        histogram: the histogram now.
        before: its [counts, total] at the earlier moment; None for the beginning.
    """
    counts, total = list(histogram.counts), histogram.total
    if before is None:
        return [counts, total]
    added = [now - then for now, then in zip(counts, before[0], strict=True)]
    return [added, total - before[1]]


def add_counts(histogram: Histogram, plain: list[Any]) -> None:
    """Add to a histogram the result of `counts_since` for another one."""
    counts, total = plain
    for k, number in enumerate(counts):
        histogram.counts[k] += number
    histogram.total += total
