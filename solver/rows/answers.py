"""The answers of solvers to rows."""

from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from wolfstream.solver.arrays import Float64Array


class Answer(Protocol):
    """A solver's answer to n rows."""

    @property
    def prediction(self) -> NDArray[Any]:
        """Class codes (n,), -1 where there is none, or values (n,)."""

    @property
    def decision(self) -> Float64Array:
        """Values (n,), or decisions (n,) of at most two classes, else (n, K); NaN without any."""


class Decisions(NamedTuple):
    """An `Answer` of given arrays."""

    prediction: NDArray[Any]
    decision: Float64Array


class Values(NamedTuple):
    """An answer that is a value for each row."""

    prediction: Float64Array  # (n,)

    @property
    def decision(self) -> Float64Array:
        """The predictions."""
        return self.prediction
