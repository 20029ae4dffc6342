"""A kind of head as data: which calls teach it, what it can do, how its results are shown.

`heads.kinds` lists all kinds.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.fit import Fit, Observe, Window
from wolfstream.service.heads.saved_arrays import SavedHead
from wolfstream.service.heads.saved_numbers import Bounds
from wolfstream.service.heads.scores import Score
from wolfstream.service.samples.labels import Label
from wolfstream.service.spec.heads import HeadName, LearningCall
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights

H = TypeVar("H")
# Runs a part of a head's code with a spec, on dense or on sparse rows.
Exercise: TypeAlias = Callable[[ModelSpec, bool], None]


class Passes(Protocol):
    """Repeated learning of the same samples, without a server."""

    @property
    def score(self) -> Score:
        """A score that has counted nothing yet."""

    def learn(self, part: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        """Learn the samples with these indices; return what the score counts, labels first."""

    def standing(self) -> dict[str, Any]:
        """Return `objective`, `gap` and what the gap is over; {} if there is no objective."""


class TrainingChoice(NamedTuple):
    """What `wolfstream train` was asked for; a head makes its part of the spec from it.

    Attributes:
        algorithm: to train with.
        options: those of `spec.heads.HEAD_OPTIONS` that have a value, except class weights.
        weights: of classes, as the spec has them.
        tol: at which a solver may end.
        samples: the number of samples.
    """

    algorithm: str
    options: Mapping[str, Any]
    weights: list[dict[str, Any]]
    tol: float
    samples: int


@dataclass(frozen=True)
class Refitting(Generic[H]):
    """How a head is refitted to a window of recent samples.

    Attributes:
        window: returns copies of the window's rows, targets and weights, oldest first.
        solve: fits a window, on any thread, for the job with this id (None without a server).
        adopt: serves a fit from now on.
    """

    window: Callable[[H], tuple[Float64Array, Float64Array, Weights]]
    solve: Callable[[Window, str | None, Observe], Fit]
    adopt: Callable[[H, Fit], None]


class PairsProblem(NamedTuple):
    """What a batch solver gets besides the rows.

    Attributes:
        kernel: of the spec.
        codes: of each row's class, (n,).
        ridge: of each row, (n,).
    """

    kernel: Kernel
    codes: NDArray[np.int64]
    ridge: Float64Array


@dataclass(frozen=True)
class Pairs(Generic[H]):
    """How a head takes over the solution of a batch solver.

    Attributes:
        problem: of all labels, which the head meets.
        most: bound on the support vectors.
        spec_with: returns the spec with room for this many support vectors; the last argument is
            the bound that was asked for, if any.
        adopt: takes over the support vectors, their codes and weights, into a new head.
    """

    problem: Callable[[H, list[Label]], PairsProblem]
    most: int
    spec_with: Callable[[ModelSpec, int, int | None], ModelSpec]
    adopt: Callable[[H, list[Label], Matrix, NDArray[np.int64], Float64Array], None]


@dataclass(frozen=True)
class Kind(Generic[H]):
    """One kind of head.

    Attributes:
        name: of the head in a spec.
        build: returns a new head, as the spec asks for it.
        calls: the learning calls whose entries and responses name it.
        learns_all: whether samples of the other calls teach it, too.
        listens: whether it gets the other heads' votes, and the rows' texts.
        prepared: whether it needs prepared rows.
        specs: models that, together, reach all code that this kind compiles.
        exercises: name -> compiles a part of that code for one of these specs, on dense or on
            sparse rows. Parts can be compiled side by side; the longest comes first.
        later: the same for code that only some data reach: no start and no request waits for it.
        code: what of a spec decides which compiled code its head runs.
        check_saved: raises WrongArrays unless what a saved head has fits together, given a new head
            of the spec. That all are arrays of numbers was checked before.
        numbers: bounds on what its saved arrays hold, without its calibration; None if its learner
            judges that itself.
        spec_part: its part of the spec for `wolfstream train`.
        reported: the fields of its description that a report of training has.
        outcome: a report's result, in a phrase.
        summary: a report's result, in a few lines.
        passes, pairs, refitting: how it is trained in these ways; None if it is not.
        beside: what its view says of rows beside another head's prediction, in a column of its
            name; None for a head that predicts. A head that has it predicts nothing.
    """

    name: HeadName
    build: Callable[[ModelSpec], H]
    calls: tuple[LearningCall, ...]
    specs: Callable[[], Iterator[ModelSpec]]
    exercises: Mapping[str, Exercise]
    code: Callable[[ModelSpec], Hashable]
    check_saved: Callable[[H, SavedHead], None]
    numbers: Bounds | None
    spec_part: Callable[[TrainingChoice], dict[str, Any]]
    reported: tuple[str, ...]
    outcome: Callable[[Mapping[str, Any]], str]
    summary: Callable[[Mapping[str, Any]], list[str]]
    later: Mapping[str, Exercise] = field(default_factory=dict)
    learns_all: bool = False
    listens: bool = False
    prepared: bool = False
    passes: Callable[[H, HeadRows, Any, Weights], Passes] | None = None
    pairs: Pairs[H] | None = None
    refitting: Refitting[H] | None = None
    beside: Callable[[Any, Matrix], list[Any]] | None = None
