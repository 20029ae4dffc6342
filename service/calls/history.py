"""Bodies of a model's past: snapshots, rollbacks and numbers over time."""

from typing import NotRequired

from wolfstream.service.calls.values import Body, Count, Object, OwnBody, Sequence, State, Time


class Rollback(OwnBody):
    """A snapshot to go back to."""

    sequence: Count
    """Sequence of a snapshot in the model's history."""


class RolledBack(Body):
    """The last rollback, or promotion."""

    to: Count
    """Sequence of the snapshot."""
    at: Count
    """The model's own sequence at the rollback, from which it continues counting."""
    time: Time
    of: NotRequired[str]
    """The model with which it exchanged states, if it was a promotion."""


class Snapshot(Body):
    """A snapshot that is kept."""

    sequence: Sequence
    epoch: str | None
    """null if the file is damaged."""
    bytes: Count
    written: Time
    samples_since: Count
    """Number of samples logged after it; a rollback to it forgets them."""
    rolled_back: RolledBack | None
    scores: dict[str, Object] | None
    """Scores of each head at that time; null if the file is damaged."""


class History(State):
    """The snapshots of a model."""

    rolled_back: RolledBack | None
    snapshots: list[Snapshot]
    """Newest first."""


class MetricsHistory(State):
    """The numbers of a model over the last hours."""

    interval_seconds: float
    """Time between two points while the model learns or predicts."""
    time: list[float]
    """Time of each point, in seconds since 1970, ascending."""
    numbers: dict[str, list[float | None]]
    """By name, each as long as `time`, null where a point lacks it: sequence, samples_per_second,
    rows_per_second, learn_seconds and predict_seconds (means of its requests), of each head its
    size, gap, and accuracy or mae over the last 1,000 samples, and those of rules that use no
    features."""
