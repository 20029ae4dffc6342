"""Answers about rows whose labels just before are known, beside those without that knowledge."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array


class InTurn(NamedTuple):
    """Answers of a bank that know the labels just before each row.

    answers: of classes or numbers. alone: the answers to the same rows without that knowledge; None
    where nobody asks for them.
    """

    answers: Any
    alone: Any = None

    @property
    def prediction(self) -> NDArray[Any]:
        """As of `votes.Answer`."""
        prediction: NDArray[Any] = self.answers.prediction
        return prediction

    @property
    def decision(self) -> Float64Array:
        """As of `votes.Answer`."""
        decision: Float64Array = self.answers.decision
        return decision

    @property
    def probability(self) -> Float64Array | None:
        """(n, K) of classes; None of numbers."""
        return getattr(self.answers, "probability", None)

    @property
    def deviation(self) -> Float64Array | None:
        """(n,) of numbers, where answers have it; else None."""
        return getattr(self.answers, "deviation", None)
