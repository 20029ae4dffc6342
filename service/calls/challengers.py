"""Bodies of challengers and their promotion."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from wolfstream.service.calls.values import (
    Count,
    ModelName,
    ModelStatus,
    OwnBody,
    State,
)

Lag: TypeAlias = Annotated[
    Count,
    Field(description="Number of samples in its champion's log that it has not learned yet."),
]
PassedOver: TypeAlias = Annotated[
    Count, Field(description="Number of samples that its spec refuses.")
]
Cost: TypeAlias = Annotated[
    float | None,
    Field(description="Time to learn a sample, on average since the server started."),
]


class Promotion(OwnBody):
    """The challenger that takes the place of its champion."""

    model: ModelName
    """Name of a challenger of this model."""


class Challenger(State):
    """A challenger beside its champion."""

    status: ModelStatus
    notice: str | None
    lag: Lag
    passed_over: PassedOver
    samples: Count
    """Number of samples compared, since the last rollback or promotion of either."""
    loss: float | None
    """Loss of the challenger on these samples: the share of errors for labels, the mean absolute
    error for numbers."""
    champion_loss: float | None
    """Loss of the champion on the same samples."""
    difference: float | None
    """Mean of (champion's loss - challenger's) / (their sum); for labels, the difference of the two
    shares of errors."""
    interval: Annotated[list[float], Field(min_length=2, max_length=2)] | None
    """Contains the expected difference at all times, with the probability `level`."""
    better: Literal["champion", "challenger"] | None
    """Which of the two is better; null while zero is within the interval."""
    cost_microseconds: Cost


class Challengers(State):
    """A model and its challengers."""

    task: str
    level: float
    """The probability with which the intervals hold."""
    cost_microseconds: Cost
    challengers: list[Challenger]
    """Oldest first."""
