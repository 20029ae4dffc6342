"""Interfaces of the solver of a head, with the settings of a spec, and of its view."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.samples.targets import Label
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.prepare.named_rows import Rows
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights
from wolfstream.solver.stream.reasons import Gradient, MemberPulls
from wolfstream.solver.stream.votes import Answer, Hints

# Learns samples, given their numbers, rows, and class numbers or targets. Returns the predictions
# before each was learned.
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

    def predict(self, X: Matrix, hints: Hints, /) -> Answer:
        """Return class numbers or values, and decisions, of finite rows. Raises InvalidSamples."""

    def pulls(self, x: Matrix, wanted: int, other: int, /) -> MemberPulls | None:
        """As of `solver.stream.class_head.LearnerView`."""

    def gradient(self, x: Float64Array, direction: Float64Array, hints: Hints, /) -> Gradient:
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

    def absorb(self, X: Matrix, y: NDArray[Any], hints: Hints, weight: Weights, /) -> Sequence[Any]:
        """Learn rows; answers part by part, each with `prediction` and `decision`.

        weight: of the samples.
        """

    def columns(self, parts: Sequence[Any], /) -> dict[str, list[Any]]:
        """Return columns of `Answers` besides prediction and decision."""

    def date(self, sequence: int, /) -> None:
        """Set the model's sequence, which is that of the last sample learned."""

    def keep_dates(self, former: Any, /) -> None:
        """Take over the sequences of a learner of the same samples in another form."""

    def relearning(self, samples: int, codes: Float64Array | None, /) -> Relearn:
        """Return a function that learns parts of n samples, which may have been learned before.

        codes: (n, texts) of all their texts, if they have any.
        """

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

    def merge(self, each: Sequence[Any], places: Sequence[NDArray[np.int64]], /) -> None:
        """Make a learner without samples that of all samples that several have learned.

        each: learners of the same spec. places: for each, the numbers (K_k,) here of the classes
        that it has met. Raises ValueError for learners that cannot be merged.
        """


class WithoutMembers:
    """What an `OnlineLearner` without stored samples has in common with others of its kind."""

    def date(self, _: int) -> None:
        """Do nothing: no stored sample has a sequence."""

    def keep_dates(self, _: object) -> None:
        """Do nothing: no stored sample has a sequence."""

    def columns(self, _: Sequence[Answer]) -> dict[str, list[Any]]:
        """Return nothing: an answer has only a prediction and its decision."""
        return {}

    def relearning(self: OnlineLearner, _: int, codes: Float64Array | None) -> Relearn:
        """Return a function that learns parts of a stream, also those learned before."""

        def relearn(part: NDArray[np.int64], X: Matrix, y: NDArray[Any]) -> Answer:
            answer: Answer
            hints = Hints(codes=None if codes is None else codes[part])
            (answer,) = self.absorb(X, y, hints, None)
            return answer

        return relearn

    def standing(self) -> dict[str, Any]:
        """Return nothing: there is no objective over all samples so far."""
        return {}
