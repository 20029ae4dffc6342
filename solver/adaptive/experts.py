"""The interface between a bank and its experts.

Experts on the shared features learn in one compiled call (`learners`), which must know each kind by
the type of its arrays. Experts of any other kind take rows in a call of their own: a new kind is a
module with a subclass of `ExpertsBeside` and a `Kind`, and a line in `learners.BESIDE`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.combination import Combination
from wolfstream.solver.adaptive.features import FeatureMap
from wolfstream.solver.adaptive.settings import Settings
from wolfstream.solver.arrays import Float64Array

# A form of rows: their shared features (n, D), the rows where they are wide, or their texts' codes.
Form: TypeAlias = Literal["features", "sparse", "codes"]


class Shape(NamedTuple):
    """What the experts of a bank are made from."""

    settings: Settings
    features: FeatureMap
    wide: bool  # whether rows have too many columns for second-order learners
    texts: int  # how many text columns rows have
    regression: bool  # one target; else K one-hot targets and one for a class that never comes


class Companion(Protocol):
    """Keeps former states of experts, and permutes their classes when all labels were permuted.

    It acts with the first ridge learner of infinite horizon (`infinite_horizon`), which detects it.
    """

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""

    def meet(self, classes: int, /) -> None:
        """Grow to `classes` classes."""

    def remember(self, combination: Combination, /) -> None:
        """Keep the present state and the one kept last; forget older ones."""

    def forget(self) -> None:
        """Forget all former states."""

    def relabel(self, permutation: NDArray[np.int64], combination: Combination, /) -> None:
        """Give class permutation[j] what was learned of class j; permutation: (K,)."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the former states as plain arrays."""

    def restore(self, state: Mapping[str, NDArray[Any]], /) -> None:
        """Restore what `state` returned."""


class Experts(ABC):
    """Experts of one kind that learn together; a bank may have several such groups of a kind.

    kinds: the parameters of each expert, in the order of scores; None is an infinite horizon.
    prior: the weight of each before any sample, at most 1.
    lookups: how many slots the experts look up for a row.
    """

    kinds: Sequence[dict[str, Any]]
    prior = 1.0
    lookups = 0

    def meet(self, classes: int) -> None:
        """Grow to `classes` classes."""
        del classes

    def end_chunk(self, samples: int) -> None:
        """Update what changes once a chunk; samples: how many the stream has had."""
        del samples

    def rescale(self, factor: float, shift: float) -> None:
        """Make every expert for targets predict factor s + shift where it predicted s."""
        del factor, shift

    def follow(self, permutation: NDArray[np.int64]) -> None:
        """Relabel stored rows from before all labels were permuted; permutation: (K,)."""
        del permutation

    def companion(self, place: slice) -> Companion | None:
        """Return what relabels these experts, the bank's experts `place`; None if nothing does."""
        del place
        return None

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory in bytes."""

    def growth(self, samples: int, rows: int) -> int:
        """Return the most bytes that further rows add.

        samples: how many the stream has had.
        rows: how many come.
        """
        del samples, rows
        return 0

    @property
    def work(self) -> int:
        """Multiplications of learning one more dense row, without cosines and exponentials."""
        return 0

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """Return plain arrays from which `restore` continues bit for bit."""

    @abstractmethod
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""

    @abstractmethod
    def merge(
        self, each: Sequence[Any], orders: Sequence[NDArray[np.int64]], share: Float64Array
    ) -> None:
        """Become the experts of all samples that several groups have learned; learn nothing before.

        each: the groups.
        orders: for each group, the new numbers of its targets (`weights.in_order`).
        share: (groups,) share of each group in all samples.
        """


class ExpertsBeside(Experts):
    """Experts that take rows in a call of their own."""

    @abstractmethod
    def absorb(self, rows: Any, Y: Float64Array, weight: Float64Array) -> Float64Array:
        """Learn rows; return the scores (n, L, K) of each before its target was learned.

        rows: n rows in the form that the kind sees.
        Y: (n, K) targets.
        weight: (n,) weights of the rows.
        """

    @abstractmethod
    def view(self) -> Any:
        """Return an immutable copy that scores rows."""


class Kind(NamedTuple):
    """A kind of experts that take rows in a call of their own."""

    name: str  # the field of `learners.LearnersView` with its view
    sees: Form
    new: Callable[[Shape], ExpertsBeside | None]  # returns None if the bank has none of this kind
    count: Callable[[Any], int]  # view -> number of experts
    scores: Callable[[Any, Any], Float64Array]  # view, rows -> (n, L, K), each row as the next one
    # view, wide row (d,), upstream (L, K) -> gradient (d,) of sum(upstream * scores); None where
    # scores are piecewise constant.
    gradient: Callable[[Any, Float64Array, Float64Array], Float64Array] | None = None
