"""What the experts of a bank that see rows are to it, of whatever kind.

The kinds on the features that all share learn in one compiled call (`learners`), which has to know
each by its type. Experts of any other kind take rows in a call of their own: a new kind is a module
with a class of `ExpertsBeside` and a `Kind`, and a line in `learners.BESIDE`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wolfstream.solver.adaptive.features import FeatureMap
from wolfstream.solver.adaptive.settings import Settings
from wolfstream.solver.arrays import Float64Array

# A form of rows: their shared features (n, D), the rows where they are wide, or their texts' codes.
Form: TypeAlias = Literal["features", "sparse", "codes"]


class Shape(NamedTuple):
    """What a bank is made for.

    wide: whether rows are. texts: how many texts a row has beside. regression: whether there is one
    target; else there are K one-hot ones and one more, of a class that never comes.
    """

    settings: Settings
    features: FeatureMap
    wide: bool
    texts: int
    regression: bool


class Experts:
    """Experts of one kind that learn together; a kind may have several such groups.

    A kind has all that raises an error here; the rest it has where it does something.

    kinds: the parameters of each, in the order of scores; an infinite horizon is None. prior: what
    each weighs before any sample, of most 1. lookups: slots that they look up for a row.
    """

    kinds: Sequence[dict[str, Any]]
    prior = 1.0
    lookups = 0

    def meet(self, classes: int) -> None:
        """Make room for so many classes."""

    def end_chunk(self, samples: int) -> None:
        """Do what is done once in a chunk, the stream being so many samples long."""

    def rescale(self, factor: float, shift: float) -> None:
        """Have every expert of targets answer factor s + shift where it answered s."""

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        raise NotImplementedError

    @property
    def work(self) -> int:
        """Multiplications of learning one more dense row, without cosines and exponentials."""
        return 0

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that `restore` needs to go on bit for bit, as plain arrays."""
        raise NotImplementedError

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        raise NotImplementedError

    def merge(
        self, each: Sequence[Any], orders: Sequence[NDArray[np.int64]], share: Float64Array
    ) -> None:
        """Become, of experts that have learned nothing, what has learned all that each has learned.

        orders: for each, where its targets go (`weights.in_order`). share: of each in all samples.
        """
        raise NotImplementedError


class ExpertsBeside(Experts):
    """Experts that take rows in a call of their own."""

    def absorb(self, rows: Any, Y: Float64Array, weight: Float64Array) -> Float64Array:
        """Learn rows in the form that they see; return scores (n, L, K) before each one's target.

        Y: (n, K). weight: (n,) of the rows.
        """
        raise NotImplementedError

    def view(self) -> Any:
        """Return what scores rows as the experts do now; nothing changes it."""
        raise NotImplementedError


class Kind(NamedTuple):
    """A kind of experts that take rows in a call of their own.

    name: of its view, in `learners.LearnersView`. sees: the form of rows that it takes.
    new: returns the experts of a bank; None if it has none. count: how many experts a view has.
    scores: (n, L, K) of a view and rows, each as if it came next.
    gradient: of a view, a wide row (d,) and of_scores (L, K), that of the sum of of_scores times
    the scores, (d,); None where scores are constant.
    """

    name: str
    sees: Form
    new: Callable[[Shape], ExpertsBeside | None]
    count: Callable[[Any], int]
    scores: Callable[[Any, Any], Float64Array]
    gradient: Callable[[Any, Float64Array, Float64Array], Float64Array] | None = None
