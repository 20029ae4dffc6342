"""What learns under a head of classes or of numbers: a solver as a spec has it, and its picture."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.samples.targets import Label
from solver.arrays import Float64Array
from solver.prepare.named_rows import Rows
from solver.rows.matrix import Matrix
from solver.rows.sample_weights import Weights
from solver.stream.reasons import Gradient, MemberPulls
from solver.stream.votes import Answer

# Learns some of the samples: their numbers, rows, and class numbers or targets. Returns what was
# predicted before each was learned.
Relearn: TypeAlias = Callable[[NDArray[np.int64], Matrix, NDArray[Any]], Answer]


class LearnerView(Protocol):
    """An immutable picture of a learner; `model` is None before the first sample."""

    @property
    def model(self) -> object | None:
        """The solver's view."""

    @property
    def stats(self) -> dict[str, Any]:
        """The learner's part of a description."""

    @property
    def gauges(self) -> dict[str, float | None]:
        """As of `HeadView`."""

    @property
    def learners(self) -> list[dict[str, Any]]:
        """As of `HeadView`."""

    def predict(self, X: Matrix, votes: Float64Array | None, /) -> Answer:
        """Return class numbers or values, and decisions, of finite rows. Raises InvalidSamples.

        votes: as of `OnlineLearner.absorb`.
        """

    def pulls(self, x: Matrix, wanted: int, other: int, /) -> MemberPulls | None:
        """As of `solver.stream.class_head.LearnerView`."""

    def gradient(
        self, x: Float64Array, direction: Float64Array, votes: Float64Array | None, /
    ) -> Gradient:
        """As of `solver.stream.class_head.LearnerView`."""

    def cost(self, rows: int, entries: int) -> int:
        """As of `HeadView`."""


class OnlineLearner(Protocol):
    """A solver that learns class numbers or targets in order."""

    def check(self, rows: Rows, /) -> None:
        """Refuse rows that it could not learn. Raises InvalidSamples."""

    @property
    def voters(self) -> tuple[str, ...]:
        """The heads that it listens to."""

    def absorb(
        self, X: Matrix, y: NDArray[Any], votes: Float64Array | None, weight: Weights, /
    ) -> Sequence[Any]:
        """Learn rows; answers part by part, each with `prediction` and `decision`.

        votes: (n, voters, K) scores, of numbers (n, voters) values; None if nobody votes.
        weight: of the samples.
        """

    def columns(self, parts: Sequence[Any], /) -> dict[str, list[Any]]:
        """Return columns of `Answers` besides prediction and decision."""

    def date(self, sequence: int, /) -> None:
        """The model is at this sequence, which is that of the last sample learned."""

    def keep_dates(self, former: Any, /) -> None:
        """Have the sequences of a learner that learned the same samples in another form."""

    def relearning(self, samples: int, /) -> Relearn:
        """Learns parts of so many samples, which may have been learned before."""

    def standing(self) -> dict[str, Any]:
        """As of `Passes`."""

    def view(self) -> LearnerView:
        """Return the learner as it is now."""

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """As of `Head`."""

    def restore(self, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], /) -> None:
        """As of `Head`."""


class ClassLearner(OnlineLearner, Protocol):
    """A solver of class numbers."""

    def meet(self, label: Label, /) -> None:
        """Prepare for the next class number, which is this label's."""
