"""A kind of head as data: the calls that teach it, its abilities, and how results are shown.

`heads.kinds` lists all kinds.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from wolfstream.service.heads.fit import Fit, Observe, Window
from wolfstream.service.heads.saved_arrays import Bounds, SavedHead
from wolfstream.service.heads.value_scores import Score
from wolfstream.service.samples.labels import Label
from wolfstream.service.spec.heads import HeadName, LearningCall
from wolfstream.service.spec.model import ModelSpec
from wolfstream.solver.arrays import Float64Array
from wolfstream.solver.kernels.functions import Kernel
from wolfstream.solver.rows.head_rows import HeadRows
from wolfstream.solver.rows.matrix import Matrix
from wolfstream.solver.rows.sample_weights import Weights

KERNELS = ("rbf", "polynomial", "linear")


H = TypeVar("H")
# Runs a part of a head's code with a spec, on dense or on sparse rows.
Exercise: TypeAlias = Callable[[ModelSpec, bool], None]


class Passes(Protocol):
    """Repeatedly learns the same samples, without a server."""

    @property
    def score(self) -> Score:
        """A score that has counted nothing yet."""

    def learn(self, part: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        """Learn the samples with these indices; return the arguments of `score.count`."""

    def standing(self) -> dict[str, Any]:
        """Return `objective`, `gap` and `gap_over`; {} if there is no objective."""


class TrainingChoice(NamedTuple):
    """The options of `wolfstream train`, from which a head makes its part of the spec.

    Attributes:
        algorithm: the solver's name.
        options: the given options of `spec.heads.HEAD_OPTIONS`, except class weights.
        weights: class weights, as in a spec.
        tol: the tolerance at which a solver may stop.
        samples: the number of samples.
    """

    algorithm: str
    options: Mapping[str, Any]
    weights: list[dict[str, Any]]
    tol: float
    samples: int


@dataclass(frozen=True)
class RefitMethod(Generic[H]):
    """How a head is refitted to a window of recent samples.

    Attributes:
        window: returns copies of the window's rows, targets and weights, oldest first.
        solve: fits a window, on any thread, for the job with this id (None without a server).
        adopt: makes the head predict with a fit from now on.
    """

    window: Callable[[H], tuple[Float64Array, Float64Array, Weights]]
    solve: Callable[[Window, str | None, Observe], Fit]
    adopt: Callable[[H, Fit], None]


class PairsProblem(NamedTuple):
    """What a batch solver gets besides the rows.

    Attributes:
        kernel: the spec's kernel.
        codes: the code of each row's class, (n,).
        ridge: the ridge of each row, (n,).
    """

    kernel: Kernel
    codes: NDArray[np.int64]
    ridge: Float64Array


@dataclass(frozen=True)
class Pairs(Generic[H]):
    """How a head takes over the solution of a batch solver.

    Attributes:
        problem: makes the solver's problem from all labels, which the head then knows.
        most: bound on the support vectors.
        spec_with: returns the spec with room for this many support vectors; the last argument is
            the requested bound, if any.
        adopt: gives a new head the classes, and the support vectors with their codes and weights.
    """

    problem: Callable[[H, list[Label]], PairsProblem]
    most: int
    spec_with: Callable[[ModelSpec, int, int | None], ModelSpec]
    adopt: Callable[[H, list[Label], Matrix, NDArray[np.int64], Float64Array], None]


@dataclass(frozen=True)
class Kind(Generic[H]):
    """One kind of head.

    Attributes:
        name: the head's name in a spec.
        build: returns a new head for a spec.
        calls: the learning calls whose log entries and responses name it.
        learns_all: whether it also learns the samples of the other calls.
        listens: whether it gets the other heads' votes and the rows' texts.
        prepared: whether it needs prepared rows.
        specs: yields models that, together, run all code that this kind compiles.
        exercises: name -> function that compiles a part of that code for one of these specs, on
            dense or sparse rows. Parts can be compiled in parallel; the longest comes first.
        later: the same for code that only some data need: no start and no request waits for it.
        code: returns what the head's compiled code depends on in a spec.
        check_saved: raises WrongArrays unless the parts of a saved head are consistent, given a new
            head of the spec. All are known to be arrays of numbers.
        numbers: bounds on the saved arrays, without the calibration; None if the learner checks
            them itself.
        spec_part: returns its part of the spec for `wolfstream train`.
        reported: the fields of its description that a training report has.
        outcome: returns a report's result in a phrase.
        summary: returns a report's result in a few lines.
        passes, pairs, refitting: how it is trained in these ways; None if it cannot be.
        beside: returns a column about rows, shown under its name beside another head's
            predictions. A head that has it predicts nothing; None for one that predicts.
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
    refitting: RefitMethod[H] | None = None
    beside: Callable[[Any, Matrix], list[Any]] | None = None
